package storage

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// crashed is a world whose store was killed with n logs, and what it writes to
// its log at INFO from its next start on, without the times.
func crashed(t *testing.T, n int32) (w *world, lines func() string) {
	w, _ = opened(t)
	for p := range n {
		put(t, w.partition(p), 1, 1)
	}
	w.settle()
	w.abandon()
	w.fs.Kill()
	var out bytes.Buffer
	w.logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "bytes" && a.Value.Int64() > 0 {
			return slog.Attr{}
		}
		return a
	}}))
	w.mustOpen()
	for p := range n {
		w.partition(p)
	}
	return w, func() string {
		defer out.Reset()
		return strings.TrimSpace(out.String())
	}
}

func (w *world) partition(p int32) *Log {
	w.t.Helper()
	l, err := w.store.OpenLog(TopicPartition{testTopic.Topic, p}, testID, testLogConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func wantLines(t *testing.T, when, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", when, got, want)
	}
}

// A recovery is one line, however many logs there are, and one each second while
// it goes on.
func TestRecoveryIsSummedUp(t *testing.T) {
	w, lines := crashed(t, 9)
	wantLines(t, "opened", lines(), "")
	w.clock.Advance(2 * time.Second)
	const progress = `msg="recovering logs after an unclean stop" done=0 found=9 bytes=0`
	wantLines(t, "while it goes on", lines(), progress+"\n"+progress)
	w.settle()
	wantLines(t, "recovered", lines(), "")
	w.clock.Advance(2 * time.Second)
	wantLines(t, "a while later", lines(), `msg="logs recovered" partitions=9 took=0s`)
	w.clock.Advance(time.Minute)
	wantLines(t, "much later", lines(), "")
}

func TestRecoveryIsSummedUpAtTheStop(t *testing.T) {
	w, lines := crashed(t, 3)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	wantLines(t, "closed", lines(), `msg="logs recovered" partitions=3 took=0s`)
}
