package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// compactedTopic is cleaned before its files are read.
const compactedTopic = "dump-compacted"

// fillCompacted writes keys again and again, in every codec, deletes some, and does so in transactions as well.
func fillCompacted(ctx context.Context, addr string, life int) error {
	rnd := rand.New(rand.NewPCG(uint64(life), 9))
	if err := makeCompacted(ctx, addr); err != nil {
		return err
	}
	for codec, compression := range codecs {
		opts := []kgo.Opt{kgo.ProducerBatchCompression(compression), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(compactedTopic)}
		plain, err := client(addr, opts...)
		if err != nil {
			return err
		}
		defer plain.Close()
		txn, err := client(addr, append(opts, kgo.TransactionalID(fmt.Sprint("dump-", codec, life)))...)
		if err != nil {
			return err
		}
		defer txn.Close()
		for round := range 10 {
			if err := errors.Join(keysOf(ctx, plain, rnd, codec), transactKeys(ctx, txn, rnd, codec, round%3 != 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

func makeCompacted(ctx context.Context, addr string) error {
	cl, err := client(addr)
	if err != nil {
		return err
	}
	defer cl.Close()
	policy, ratio, retention := "compact", "0.01", "300"
	_, err = kadm.NewClient(cl).CreateTopic(ctx, 1, 1, map[string]*string{
		"cleanup.policy": &policy, "min.cleanable.dirty.ratio": &ratio, "delete.retention.ms": &retention,
	}, compactedTopic)
	if err != nil && !strings.Contains(err.Error(), "TOPIC_ALREADY_EXISTS") {
		return err
	}
	return nil
}

func keysOf(ctx context.Context, cl *kgo.Client, rnd *rand.Rand, codec string) error {
	var records []*kgo.Record
	for range 100 {
		r := &kgo.Record{Key: fmt.Appendf(nil, "%s-%d", codec, rnd.IntN(60)), Value: make([]byte, rnd.IntN(700))}
		for i := range r.Value[:len(r.Value)/2] { // the rest compresses
			r.Value[i] = byte(rnd.Uint32())
		}
		if rnd.IntN(8) == 0 {
			r.Value = nil
		}
		records = append(records, r)
	}
	return cl.ProduceSync(ctx, records...).FirstErr()
}

func transactKeys(ctx context.Context, cl *kgo.Client, rnd *rand.Rand, codec string, commit bool) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	err := keysOf(ctx, cl, rnd, codec)
	return errors.Join(err, cl.EndTransaction(ctx, kgo.TransactionEndTry(commit && err == nil)))
}

// gap is what the tool says of offsets that follow one another with others missing between, as they do in a cleaned log.
var gap = regexp.MustCompile(`Non-consecutive offsets in .*\n((?:  -?\d+ is followed by \d+\n)+)`)

var pair = regexp.MustCompile(`(-?\d+) is followed by (\d+)`)

// dumpCompacted reads cleaned segments: nothing but gaps may be said of them, and offsets must rise.
func dumpCompacted(ctx context.Context, libs string, files []string) error {
	if len(files) == 0 {
		return errors.New("there is no cleaned segment")
	}
	cmd := exec.CommandContext(ctx, "java", harness.JavaArgs(libs, 512, "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", strings.Join(files, ","))...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if rest := gap.ReplaceAllString(stderr.String(), ""); err != nil || strings.TrimSpace(rest) != "" {
		return fmt.Errorf("DumpLogSegments over %s: %v:\n%s", compactedTopic, err, rest)
	}
	for _, m := range pair.FindAllStringSubmatch(stderr.String(), -1) {
		var a, b int64
		if _, err := fmt.Sscan(m[1], &a); err != nil {
			return err
		}
		if _, err := fmt.Sscan(m[2], &b); err != nil || b <= a {
			return fmt.Errorf("offset %s follows %s in a cleaned log (%v)", m[2], m[1], err)
		}
	}
	for line := range strings.Lines(stdout.String()) {
		if complaints.MatchString(line) {
			return fmt.Errorf("DumpLogSegments complains of a cleaned log: %s", line)
		}
	}
	for what, want := range map[string]int{
		" count: 0 ": 1, "is followed by": 10, "deleteHorizonMs: OptionalLong[": 1, "endTxnMarker: COMMIT": 1, "isTransactional: true": 10,
		"compresscodec: gzip": 1, "compresscodec: zstd": 1, "compresscodec: lz4": 1, "compresscodec: snappy": 1,
	} {
		if n := strings.Count(stdout.String()+stderr.String(), what); n < want {
			return fmt.Errorf("the cleaned log has only %d times %q, fewer than %d", n, what, want)
		}
	}
	return nil
}
