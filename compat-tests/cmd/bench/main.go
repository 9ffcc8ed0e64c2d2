// Command bench measures the broker beside Apache Kafka, alternating, on one machine, one disk and with one client; with
// -budget it holds the broker against its own budgets instead.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

type options struct {
	rounds  int
	mib     int
	rate    int
	latency time.Duration
	brokers []harness.Kind
	only    string
	dir     string
}

func main() {
	var o options
	var brokers string
	flag.IntVar(&o.rounds, "rounds", 3, "of each broker, alternating; the medians are reported")
	flag.IntVar(&o.mib, "mib", 256, "MiB to produce and consume in each row")
	flag.IntVar(&o.rate, "rate", 1000, "records a second in the latency row")
	flag.DurationVar(&o.latency, "latency", 10*time.Second, "how long the latency row lasts")
	flag.StringVar(&brokers, "brokers", "barnabas,kafka", "which to measure")
	flag.StringVar(&o.only, "only", "", "only rows whose name has this in it")
	flag.StringVar(&o.dir, "dir", os.Getenv("COMPAT_TMP"), "where to put the data folders; the disk is part of what is measured")
	write := flag.Bool("write", false, "record the figures in results/bench.json and docs/performance.md")
	docs := flag.Bool("docs", false, "only write docs/performance.md anew")
	budget := flag.Bool("budget", false, "check the budgets instead")
	flag.Parse()
	for _, b := range strings.Split(brokers, ",") {
		o.brokers = append(o.brokers, harness.Kind(b))
	}
	ctx := context.Background()
	var err error
	switch {
	case *budget:
		err = runBudgets(ctx, o)
	case *docs:
		var r *report
		if r, err = readReport(); err == nil {
			err = r.writeDocs()
		}
	default:
		err = runBench(ctx, o, *write)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report is what results/bench.json holds: for each row, each broker's figure of every round.
type report struct {
	Machine string
	Date    string
	MiB     int
	Rows    []*figure
}

type figure struct {
	Name    string
	Unit    string
	More    bool // more is better
	Figures map[harness.Kind][]float64
}

func (r *report) add(kind harness.Kind, name, unit string, more bool, v float64) {
	for _, f := range r.Rows {
		if f.Name == name {
			f.Figures[kind] = append(f.Figures[kind], v)
			return
		}
	}
	r.Rows = append(r.Rows, &figure{name, unit, more, map[harness.Kind][]float64{kind: {v}}})
}

func resultsFile() string { return filepath.Join(harness.Root(), "results", "bench.json") }

func readReport() (*report, error) {
	b, err := os.ReadFile(resultsFile())
	if err != nil {
		return nil, err
	}
	var r report
	return &r, json.Unmarshal(b, &r)
}

func runBench(ctx context.Context, o options, write bool) error {
	r := &report{Machine: machine(), Date: time.Now().UTC().Format("2006-01-02"), MiB: o.mib}
	for round := range o.rounds {
		for i := range o.brokers {
			kind := o.brokers[(i+round)%len(o.brokers)]
			fmt.Printf("round %d of %d: %s\n", round+1, o.rounds, kind)
			if err := oneRound(ctx, o, kind, r); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			if err := groupRows(ctx, o, kind, r); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	fmt.Print(r.table())
	if !write {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(resultsFile()), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(resultsFile(), append(b, '\n'), 0o644); err != nil {
		return err
	}
	return r.writeDocs()
}

func machine() string {
	name := "a CPU that does not say its name"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d x %s, %s/%s", runtime.NumCPU(), name, runtime.GOOS, runtime.GOARCH)
}
