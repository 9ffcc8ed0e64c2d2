package storage

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/storage/segment"
)

// gapped is a log of 64 batches in segments that begin at multiples of 16, opened
// again without some of its files, and what was told of that.
func gapped(t *testing.T, kill bool, cfg func(*LogConfig), gone ...string) (l *Log, told func() string) {
	t.Helper()
	w, l := opened(t)
	for i := range int32(64) {
		if _, err := l.Append(AppendRequest{Batches: makeBatch(1000+int64(i), "x", 1, stamp(1, 0, i))}); err != nil {
			t.Fatal(err)
		}
		l.SetHighWatermark(int64(i) + 1)
		w.settle()
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if kill {
		if err := w.store.writeCheckpoints(); err != nil {
			t.Fatal(err)
		}
		w.abandon()
		w.fs.Kill()
	} else if err := w.close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range gone {
		if err := w.fs.Remove(l.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w.logger = slog.New(slog.NewTextHandler(&out, nil))
	w.mustOpen()
	c := testLogConfig()
	if cfg != nil {
		cfg(&c)
	}
	l, err := w.store.OpenLog(testTopic, testID, c)
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	return l, func() string {
		var lines []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "missing") {
				lines = append(lines, line)
			}
		}
		out.Reset()
		return strings.Join(lines, "")
	}
}

func allFiles(base int64) (names []string) {
	for _, suffix := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeIndexSuffix} {
		names = append(names, segment.FileName(base, suffix))
	}
	return names
}

// A segment that is gone is told of, with its offsets: from the list of files where
// that shows it, else by the first read that goes over the gap.
func TestMissingSegmentsAreTold(t *testing.T) {
	for name, test := range map[string]struct {
		gone    []string
		loading string // what is told then, and what by reading
		reading string
	}{
		"nothing":          {},
		"middle .log":      {[]string{segment.FileName(16, segment.LogSuffix)}, "fromOffset=16 toOffset=32", "fromOffset=16 toOffset=32"},
		"middle segment":   {allFiles(16), "", "fromOffset=16 toOffset=32"},
		"first .log":       {[]string{segment.FileName(0, segment.LogSuffix)}, "fromOffset=0 toOffset=16", ""},
		"first segment":    {allFiles(0), "fromOffset=0 toOffset=16", ""},
		"two middle .logs": {[]string{segment.FileName(16, segment.LogSuffix), segment.FileName(32, segment.LogSuffix)}, "fromOffset=32 toOffset=48", "fromOffset=16 toOffset=48"},
	} {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed %v", name, kill), func(t *testing.T) {
				l, told := gapped(t, kill, nil, test.gone...)
				if _, err := l.SizeBytes(); err != nil {
					t.Fatal(err)
				}
				check := func(when, want string) {
					t.Helper()
					got := told()
					if (want == "") != (got == "") || !strings.Contains(got, want) {
						t.Errorf("%s: told %q, want %q", when, got, want)
					}
				}
				check("loading", test.loading)
				contents(t, l)
				check("reading", test.reading)
				contents(t, l)
				check("reading again", "")
			})
		}
	}
}

// The last segment's file is missed by its end, which a clean stop has noted.
func TestMissingLastSegmentIsTold(t *testing.T) {
	l, told := gapped(t, false, nil, segment.FileName(48, segment.LogSuffix))
	if _, err := l.SizeBytes(); err != nil {
		t.Fatal(err)
	}
	if got := told(); !strings.Contains(got, "fromOffset=48 toOffset=64") {
		t.Errorf("told %q", got)
	}
}

// Compaction leaves gaps, but no index without its .log, and keeps the log's start.
func TestGapsOfCompactionAreNotTold(t *testing.T) {
	l, told := gapped(t, false, func(c *LogConfig) { c.Compact = true }, allFiles(16)...)
	contents(t, l)
	if got := told(); got != "" {
		t.Errorf("told %q", got)
	}
	l, told = gapped(t, false, func(c *LogConfig) { c.Compact = true }, allFiles(0)...)
	if _, err := l.SizeBytes(); err != nil {
		t.Fatal(err)
	}
	if got := told(); !strings.Contains(got, "fromOffset=0 toOffset=16") {
		t.Errorf("a first segment that is gone: told %q", got)
	}
}
