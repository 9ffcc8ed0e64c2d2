// Command compat runs each client's row against a broker of its own, records the outcomes and writes docs/compat.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// rows are the clients' packages, in the order in which docs/compat.md has them. One with "@old" is built with the
// versions of its old.mod and with the tag old, instead of those of go.mod.
var rows = []string{
	"kcat",
	"franz",
	"franz@old",
	"kgosuite",
	"sarama",
	"sarama@old",
	"kafkago",
	"kafkago@old",
	"confluent",
	"confluent@old",
	"java",
	"oldjava",
	"streams",
	"connect",
	"tools",
	"kafkagosuite",
	"saramasuite",
	"nodesuite",
	"legacy",
	"python",
	"node",
	"rust",
}

func main() {
	only := flag.String("rows", strings.Join(rows, ","), "which rows to run, by comma")
	kind := flag.String("broker", string(harness.Barnabas), "barnabas or kafka, the oracle")
	write := flag.Bool("write", false, "record the outcomes in results/compat.json and docs/compat.md; only for all rows against barnabas")
	jobs := flag.Int("jobs", 2, "how many rows run at a time")
	docs := flag.Bool("docs", false, "only write docs/compat.md anew from results/compat.json")
	flag.Parse()
	if err := run(strings.Split(*only, ","), harness.Kind(*kind), max(1, *jobs), *write, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func run(names []string, kind harness.Kind, jobs int, write, docs bool) error {
	file := filepath.Join(harness.Root(), "results", "compat.json")
	if docs {
		report, err := readReport(file)
		if err != nil {
			return err
		}
		return writeDocs(report)
	}
	if write && (len(names) != len(rows) || kind != harness.Barnabas) {
		return fmt.Errorf("-write wants all %d rows against barnabas", len(rows))
	}
	if kind == harness.Barnabas {
		if _, err := harness.Binary(); err != nil {
			return err
		}
	}
	report := &Report{Broker: string(kind)}
	failed, err := runAll(report, names, kind, jobs)
	if err != nil {
		return err
	}
	if write {
		if err := writeReport(file, report); err != nil {
			return err
		}
		if err := writeDocs(report); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d rows failed", failed, len(report.Rows))
	}
	return nil
}

// runAll runs the packages, jobs of them at a time, and adds their rows in the given order.
func runAll(report *Report, names []string, kind harness.Kind, jobs int) (failed int, err error) {
	byName := make([][]*Row, len(names))
	errs := make([]error, len(names))
	slots := make(chan struct{}, jobs)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			byName[i], errs[i] = runRow(name, kind)
			mu.Lock()
			defer mu.Unlock()
			for _, row := range byName[i] {
				row.print()
			}
		})
	}
	wg.Wait()
	for _, rows := range byName {
		report.Rows = append(report.Rows, rows...)
		for _, row := range rows {
			if !row.ok() {
				failed++
			}
		}
	}
	return failed, errors.Join(errs...)
}

func (r *Row) print() {
	fmt.Println(r.line())
	for _, s := range r.Skipped {
		fmt.Printf("    not run: %s: %s\n", s.Test, s.Why)
	}
	for _, f := range r.Failed {
		fmt.Printf("    FAILED: %s\n%s\n", f.Test, indent(f.Why))
	}
}

func indent(s string) string {
	return "        " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n        ")
}
