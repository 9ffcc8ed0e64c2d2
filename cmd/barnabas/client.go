package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"
)

const (
	defaultBroker = "localhost:9092"
	// commandTimeout bounds the requests of commands that ask one thing.
	commandTimeout = 30 * time.Second
	// answerTimeout is how long a broker may take for its first answer.
	answerTimeout = 3 * time.Second
)

// brokerFlag and outputFlag are on every command that talks to a broker.
var (
	brokerFlag = &cli.StringFlag{
		Name: "broker", Aliases: []string{"b"}, Value: defaultBroker, EnvVars: []string{"BARNABAS_BROKER"},
		Usage: "`HOST:PORT` of a broker, or several with commas",
	}
	outputFlag = &cli.StringFlag{
		Name: "output", Aliases: []string{"o"}, Value: "text",
		Usage: "`FORMAT` of what is printed: text for people, json for programs",
	}
)

// clientFlags puts the common flags before a command's own.
func clientFlags(own ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{brokerFlag, outputFlag}, own...)
}

// newClient connects to the broker that the flags name and checks that it
// answers, so that a wrong address is one clear sentence and not a silent retry.
func newClient(c *cli.Context, opts ...kgo.Opt) (*kgo.Client, error) {
	seeds, err := seedAddresses(c.String("broker"))
	if err != nil {
		return nil, err
	}
	opts = append([]kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ClientID("barnabas-cli"),
		kgo.RetryTimeout(commandTimeout),
		kgo.DialTimeout(answerTimeout),
	}, opts...)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("set up the client: %w", err)
	}
	ctx, cancel := context.WithTimeout(c.Context, answerTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, unreachable(seeds, err)
	}
	return client, nil
}

// withAdmin runs f with an admin client and a bounded context.
func withAdmin(c *cli.Context, f func(context.Context, *kadm.Client) error) error {
	return withClient(c, func(ctx context.Context, client *kgo.Client) error { return f(ctx, kadm.NewClient(client)) })
}

// withClient runs f with a client and a bounded context.
func withClient(c *cli.Context, f func(context.Context, *kgo.Client) error) error {
	client, err := newClient(c)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(c.Context, commandTimeout)
	defer cancel()
	// What takes long is looked into: the library tries an address that does not work in silence.
	slow := time.AfterFunc(answerTimeout, func() {
		if toldReachable(ctx, client) != nil {
			cancel()
		}
	})
	defer slow.Stop()
	return explainLost(ctx, client, f(ctx, client))
}

func seedAddresses(list string) ([]string, error) {
	var seeds []string
	for _, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(s); err != nil {
			if strings.Contains(s, ":") {
				return nil, usagef("--broker %q: want HOST:PORT, for example localhost:9092", s)
			}
			s += ":9092"
		}
		seeds = append(seeds, s)
	}
	if len(seeds) == 0 {
		return nil, usagef("--broker is empty: want HOST:PORT, for example localhost:9092")
	}
	return seeds, nil
}

// startHint follows what is said when no broker answers.
const startHint = "\nIs it running? `barnabas serve` starts one, `barnabas doctor` says what is wrong"

func unreachable(seeds []string, err error) error {
	return fmt.Errorf("%w%s", nobodyAt(seeds, err), startHint)
}

func nobodyAt(seeds []string, err error) error {
	return fmt.Errorf("no broker answers at %s: %w", strings.Join(seeds, ", "), noAnswer(seeds, err))
}

// errNotKafka is what is known of a port that takes connections and gives no
// answer that makes sense.
var errNotKafka = errors.New("something listens there, but it does not speak Kafka")

// noAnswer is why a broker did not answer at seeds. A connection that took too long says
// little, and nothing when the asker's own time was over: it is tried once more.
func noAnswer(seeds []string, err error) error {
	cause := rootCause(err)
	var op *net.OpError
	if errors.As(cause, &op) && op.Op == "dial" && !op.Timeout() {
		return cause
	}
	var refused error
	for _, s := range seeds {
		conn, err := net.DialTimeout("tcp", s, time.Second)
		if err == nil {
			_ = conn.Close()
			return errNotKafka
		}
		refused = err
	}
	return cmp.Or(refused, cause)
}

// rootCause drops the client's own wrapping from a connection error.
func rootCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	return err
}
