package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"
)

// maxLineBytes bounds one line of input; a record may not be larger anyway by
// default.
const maxLineBytes = 16 << 20

// A broker says of a topic that it is just creating that there is none, so the
// client asks again: every newTopicPoll, and newTopicPolls times, one second in
// all, before the topic is taken to be missing.
const (
	newTopicPoll  = 20 * time.Millisecond
	newTopicPolls = 50
)

func produceCommand() *cli.Command {
	return &cli.Command{
		Name: "produce", Usage: "send records: each line of standard input, or each argument", ArgsUsage: "TOPIC [VALUE...]", Action: produce,
		Description: "Without values, every line of standard input is one record, an empty one an empty record.\n" +
			"With --key-separator, what stands before the separator is the key; a line without one is an error that ends\n" +
			"the command: what stands before that line is sent, nothing from it on.",
		Flags: clientFlags(
			&cli.StringFlag{Name: "key", Aliases: []string{"k"}, Usage: "key of every record"},
			&cli.StringFlag{Name: "key-separator", Aliases: []string{"K"}, Usage: "split each line into key and value at `SEP`"},
			&cli.StringSliceFlag{Name: "header", Aliases: []string{"H"}, Usage: "header `NAME=VALUE` on every record; may be repeated"},
			&cli.IntFlag{Name: "partition", Aliases: []string{"p"}, Value: -1, Usage: "partition; -1 lets the key decide", Action: within("partition", 0, mostPartitions, -1)},
			&cli.StringFlag{Name: "acks", Value: "all", Usage: "what counts as sent: all, 1 or 0"},
			&cli.StringFlag{Name: "compression", Aliases: []string{"z"}, Value: "none", Usage: "none, gzip, snappy, lz4 or zstd"},
			&cli.BoolFlag{Name: "tombstone", Usage: "send a null value (needs --key and no values)"},
		),
	}
}

func produce(c *cli.Context) error {
	args, err := arguments(c, "topic")
	if err != nil {
		return err
	}
	opts, err := produceOptions(c)
	if err != nil {
		return err
	}
	topic, values := args[0], args[1:]
	headers, err := recordHeaders(c.StringSlice("header"))
	if err != nil {
		return err
	}
	if _, err := asJSON(c); err != nil {
		return err
	}
	batchBytes := new(atomic.Int32)
	batchBytes.Store(defaultBatchBytes)
	opts = append(opts, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytesFn(func(string) int32 { return batchBytes.Load() }))
	client, err := newClient(c, opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := toldReachable(c.Context, client); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	batchBytes.Store(batchLimit(c.Context, client, topic))
	interrupted, stop := untilInterrupted(c.Context)
	defer stop()
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	context.AfterFunc(interrupted, func() { time.AfterFunc(stopTimeout, cancel) })
	s := &sender{ctx: ctx, interrupted: interrupted.Done(), client: client, headers: headers, partition: int32(c.Int("partition")), separator: c.String("key-separator"), patience: commandTimeout}
	if s.brokers, err = seedAddresses(c.String("broker")); err != nil {
		return err
	}
	if c.IsSet("key") {
		s.key = []byte(c.String("key"))
	}
	if err := s.sendAll(c, values); err != nil {
		return s.stopped(topic, err)
	}
	return s.finish(c, topic)
}

func produceOptions(c *cli.Context) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(newTopicPoll), kgo.UnknownTopicRetries(newTopicPolls),
		kgo.MaxBufferedRecords(100_000),
	}
	switch v := c.String("acks"); v {
	case "all", "-1":
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, usagef("--acks %q: want all, 1 or 0", v)
	}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, ok := codecs[c.String("compression")]
	if !ok {
		return nil, usagef("--compression %q: want none, gzip, snappy, lz4 or zstd", c.String("compression"))
	}
	opts = append(opts, kgo.ProducerBatchCompression(codec))
	if c.Int("partition") >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	return opts, nil
}

func recordHeaders(list []string) ([]kgo.RecordHeader, error) {
	var headers []kgo.RecordHeader
	for _, h := range list {
		k, v, ok := strings.Cut(h, "=")
		if !ok || k == "" {
			return nil, usagef("--header %q: want NAME=VALUE", h)
		}
		headers = append(headers, kgo.RecordHeader{Key: k, Value: []byte(v)})
	}
	return headers, nil
}

// sendFailure is a record that could not be sent, and why.
type sendFailure struct {
	record *kgo.Record
	err    error
}

// sender turns lines into records and remembers the first failure.
type sender struct {
	ctx context.Context
	// interrupted ends the input; what was read is still sent.
	interrupted <-chan struct{}

	client *kgo.Client
	// brokers are the addresses that the user gave, and patience how long the last
	// records may wait for their acknowledgement.
	brokers  []string
	patience time.Duration

	key       []byte
	headers   []kgo.RecordHeader
	partition int32
	separator string

	sent   atomic.Int64
	failed atomic.Pointer[sendFailure]
}

func (s *sender) sendAll(c *cli.Context, values []string) error {
	switch {
	case c.Bool("tombstone"):
		if s.key == nil || len(values) > 0 {
			return usagef("produce --tombstone: give --key and no value")
		}
		s.send(&kgo.Record{Key: s.key})
		return nil
	case len(values) > 0:
		for i, v := range values {
			if err := s.sendLine(v, "value", i+1); err != nil {
				return err
			}
		}
		return nil
	}
	return s.sendLines(c, c.App.Reader)
}

func (s *sender) sendLines(c *cli.Context, in io.Reader) error {
	if f, ok := in.(*os.File); ok && isTerminal(f) {
		fmt.Fprintln(c.App.ErrWriter, "Each line is a record; Ctrl-D ends.")
	}
	lines, end := readLines(in)
	defer close(end)
	for n := 1; s.failed.Load() == nil; n++ {
		select {
		case <-s.interrupted:
			return nil
		case l := <-lines:
			if l.err != nil || l.last {
				return l.err
			}
			if err := s.sendLine(l.text, "line", n); err != nil {
				return err
			}
		}
	}
	return nil
}

// inputLine is one line of standard input, or its end.
type inputLine struct {
	text string
	last bool
	err  error
}

// readLines reads in a goroutine, because nothing ends a read from a terminal
// when the user interrupts. It ends with the input or, after end is closed, with
// the line that it is reading.
func readLines(in io.Reader) (lines <-chan inputLine, end chan<- struct{}) {
	out, done := make(chan inputLine), make(chan struct{})
	go func() {
		scanner := bufio.NewScanner(in)
		scanner.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
		put := func(l inputLine) bool {
			select {
			case out <- l:
				return true
			case <-done:
				return false
			}
		}
		for scanner.Scan() {
			if !put(inputLine{text: scanner.Text()}) {
				return
			}
		}
		err := scanner.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("read standard input: a line is longer than %s", sizeText(maxLineBytes))
		}
		put(inputLine{last: true, err: err})
	}()
	return out, done
}

// sendLine sends a line or value, the nth of its kind. One without the separator that
// was asked for is refused, as by Kafka's own console producer with parse.key.
func (s *sender) sendLine(text, kind string, n int) error {
	r := &kgo.Record{Key: s.key, Value: []byte(text)}
	if s.separator != "" {
		k, v, ok := strings.Cut(text, s.separator)
		if !ok {
			return fmt.Errorf("%s %d has no %q, which --key-separator says stands behind the key", kind, n, s.separator)
		}
		r.Key, r.Value = []byte(k), []byte(v)
	}
	s.send(r)
	return nil
}

func (s *sender) send(r *kgo.Record) {
	r.Headers, r.Partition = s.headers, max(s.partition, 0)
	s.client.Produce(s.ctx, r, func(r *kgo.Record, err error) {
		if err != nil {
			s.failed.CompareAndSwap(nil, &sendFailure{r, err})
			return
		}
		s.sent.Add(1)
	})
}

// finish waits for the acknowledgements and says how many records were sent.
func (s *sender) finish(c *cli.Context, topic string) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	flushErr := s.client.Flush(ctx)
	result := map[string]any{"topic": topic, "records": s.sent.Load()}
	if err := s.failure(topic, flushErr); err != nil {
		return err
	}
	return show(c, result, func(io.Writer) error {
		_, err := fmt.Fprintf(c.App.ErrWriter, "Sent %s to %s.\n", plural(int(s.sent.Load()), "record"), topic)
		return err
	})
}

// isTerminal says whether f is a person's terminal: a character device, and not the
// one that is always at its end.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
