package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// complaints are the ways in which DumpLogSegments finds fault.
var complaints = regexp.MustCompile(`(?i)mismatch|non-consecutive|out of order|isvalid: false|exception|corrupt|error|could not|failed|unknown|unexpected|problem|missing|warn|does not`)

// dump runs the tool over files and returns what it printed, unless it complained.
func dump(ctx context.Context, libs, how string, files []string) (string, error) {
	if len(files) == 0 {
		return "", fmt.Errorf("there is no file for %s", how)
	}
	args := harness.JavaArgs(libs, 512, "org.apache.kafka.tools.DumpLogSegments", how, "--files", strings.Join(files, ","))
	cmd := exec.CommandContext(ctx, "java", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if complaint := firstOfSegment.ReplaceAllStringFunc(stderr.String(), dropFirst); err != nil || complaint != "" {
		return "", fmt.Errorf("DumpLogSegments %s: %w:\n%s", how, errors.Join(err, errors.New("it wrote to stderr")), complaint)
	}
	for line := range strings.Lines(stdout.String()) {
		if complaints.MatchString(line) {
			at := strings.Index(stdout.String(), line)
			return "", fmt.Errorf("DumpLogSegments %s complains:\n%s", how, stdout.String()[max(0, at-500):min(stdout.Len(), at+1500)])
		}
	}
	for _, file := range files {
		if !strings.Contains(stdout.String(), "Dumping "+file) {
			return "", fmt.Errorf("DumpLogSegments %s did not read %s", how, file)
		}
	}
	return stdout.String(), nil
}

// firstOfSegment is what the tool of Kafka 4.4 says with --deep-iteration of every segment that does not begin at 0,
// those of Apache Kafka's broker too: it takes the segment's first offset for a gap after -1.
var firstOfSegment = regexp.MustCompile(`Non-consecutive offsets in .*/(\d{20})\.log\n  -1 is followed by (\d+)\n`)

// dropFirst keeps the complaint unless it is about the very offset that the segment is named by.
func dropFirst(complaint string) string {
	m := firstOfSegment.FindStringSubmatch(complaint)
	if strings.TrimLeft(m[1], "0") == m[2] {
		return ""
	}
	return complaint
}

// allSane wants the tool's word on each index: sane, or empty where it is.
func allSane(said string, indexes []string) error {
	for _, index := range indexes {
		info, err := os.Stat(index)
		if err != nil {
			return err
		}
		want := index + " passed sanity check."
		if info.Size() == 0 {
			want = index + " is empty."
		}
		if !strings.Contains(said, want) {
			return fmt.Errorf("DumpLogSegments --index-sanity-check does not say %q", want)
		}
	}
	return nil
}

var (
	snapshotEntry = regexp.MustCompile(`(?m)^producerId: \d+ producerEpoch: \d+`)
	indexEntry    = regexp.MustCompile(`(?m)^offset: \d+ position: \d+`)
	timeEntry     = regexp.MustCompile(`(?m)^timestamp: \d+ offset: \d+`)
)

// notTrivial wants the folder to have had in it what the check is about.
func notTrivial(deep, offsets string, files *fileSet) error {
	for codec := range codecs {
		if n := strings.Count(deep, "compresscodec: "+codec+" "); n < 20 {
			return fmt.Errorf("only %d batches of codec %s", n, codec)
		}
	}
	for what, want := range map[*regexp.Regexp]int{snapshotEntry: 10, indexEntry: 500, timeEntry: 100} {
		if n := len(what.FindAllString(deep, -1)); n < want {
			return fmt.Errorf("only %d lines like %s, fewer than %d", n, what, want)
		}
	}
	if len(files.logs) < 20 || len(files.snapshots) < 10 {
		return fmt.Errorf("only %d logs and %d snapshots", len(files.logs), len(files.snapshots))
	}
	for _, index := range files.indexes {
		if info, err := os.Stat(index); err != nil || info.Size() > 1<<20 {
			return fmt.Errorf("%s is %d bytes after a clean stop: %w", index, info.Size(), err)
		}
	}
	for g := range groups {
		group := fmt.Sprintf("dump-group-%d", g)
		if !strings.Contains(offsets, group) || !strings.Contains(offsets, topicOf("zstd")) {
			return fmt.Errorf("the decoded offsets lack %s", group)
		}
	}
	return nil
}
