// Command importcheck has Apache Kafka write data folders that are not trivial, takes them over with `barnabas import`, and
// holds Barnabas on the result against Apache Kafka on a copy: topics, settings, every record, offsets, groups. The originals'
// checksums must not change. One difference fails it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func main() {
	dir := flag.String("dir", "", "a folder to use and keep; without it a temporary one, kept on failure")
	only := flag.String("only", "", "one of stopped, killed and older; the last is Apache Kafka "+harness.OlderVersion+" with records of formats v0 and v1")
	flag.Parse()
	_, err := harness.JavaLibs()
	if errors.Is(err, harness.ErrNoJVM) && os.Getenv("CI") == "" {
		fmt.Println("importcheck: not run:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "importcheck:", err)
		os.Exit(1)
	}
	keep := *dir != ""
	if !keep {
		if *dir, err = os.MkdirTemp(os.Getenv("COMPAT_TMP"), "importcheck-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if err := run(context.Background(), *dir, *only); err != nil {
		fmt.Fprintf(os.Stderr, "importcheck: FAILED: %v\nthe files are in %s\n", err, *dir)
		os.Exit(1)
	}
	if !keep {
		_ = os.RemoveAll(*dir)
	}
}

// scenario is one life of a Kafka whose folders are imported.
type scenario struct {
	name string
	kind harness.Kind
	// killed says that the broker was ended by SIGKILL.
	killed bool
}

func run(ctx context.Context, dir, only string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	scenarios := []scenario{
		{name: "stopped", kind: harness.Kafka}, {name: "killed", kind: harness.Kafka, killed: true}, {name: "older", kind: harness.KafkaOlder},
	}
	for _, s := range scenarios {
		if only != "" && only != s.name {
			continue
		}
		began := time.Now()
		said, err := s.run(ctx, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Printf("importcheck: %s: ok: %s (%s)\n", s.name, said, time.Since(began).Round(time.Second))
	}
	return nil
}
