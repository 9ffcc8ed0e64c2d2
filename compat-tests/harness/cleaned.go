package harness

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// AwaitCleaned returns once the cleaner has reached the active segment of every partition of a topic, as the broker's own
// cleaner-offset-checkpoint says: the file is the same for both brokers. It returns where each was cleaned to.
func (b *Broker) AwaitCleaned(ctx context.Context, topics ...string) (map[string]int64, error) {
	var last string
	for {
		cleaned, behind, err := b.cleaned(topics)
		if err == nil && behind == "" {
			return cleaned, nil
		}
		last = fmt.Sprint(behind, err)
		select {
		case <-b.Exited():
			return nil, fmt.Errorf("the broker ended while its logs were cleaned: %v", b.err)
		case <-ctx.Done():
			return nil, fmt.Errorf("not cleaned: %w (%s)", ctx.Err(), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// cleaned reads how far the partitions were cleaned; behind names one that is not done.
func (b *Broker) cleaned(topics []string) (cleaned map[string]int64, behind string, err error) {
	cleaned, err = readOffsets(filepath.Join(b.DataDir(), "cleaner-offset-checkpoint"))
	if err != nil {
		return nil, "", err
	}
	folders, err := os.ReadDir(b.DataDir())
	if err != nil {
		return nil, "", err
	}
	mine := map[string]int64{}
	for _, f := range folders {
		topic, _, _ := cutLast(f.Name(), "-")
		for _, t := range topics {
			if topic != t {
				continue
			}
			active, err := activeSegment(filepath.Join(b.DataDir(), f.Name()))
			if err != nil {
				return nil, "", err
			}
			if mine[f.Name()] = cleaned[f.Name()]; cleaned[f.Name()] < active {
				return nil, fmt.Sprintf("%s is cleaned up to %d of %d", f.Name(), cleaned[f.Name()], active), nil
			}
		}
	}
	return mine, "", nil
}

// readOffsets reads a checkpoint file by the names of the partitions' folders.
func readOffsets(name string) (map[string]int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	offsets := map[string]int64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 {
			offsets[fields[0]+"-"+fields[1]], _ = strconv.ParseInt(fields[2], 10, 64)
		}
	}
	return offsets, lines.Err()
}

// activeSegment is the offset that the newest segment of a folder begins at.
func activeSegment(dir string) (int64, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("no segment in %s: %v", dir, err)
	}
	return strconv.ParseInt(strings.TrimSuffix(filepath.Base(files[len(files)-1]), ".log"), 10, 64)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
