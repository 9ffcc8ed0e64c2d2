// Command compat runs each client's row against a broker of its own, records the outcomes and writes docs/compat.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// rows are the clients' packages, in the order in which docs/compat.md has them.
var rows = []string{"kcat", "franz", "kgosuite", "sarama", "kafkago", "confluent", "java"}

func main() {
	only := flag.String("rows", strings.Join(rows, ","), "which rows to run, by comma")
	kind := flag.String("broker", string(harness.Barnabas), "barnabas or kafka, the oracle")
	write := flag.Bool("write", false, "record the outcomes in results/compat.json and docs/compat.md; only for all rows against barnabas")
	docs := flag.Bool("docs", false, "only write docs/compat.md anew from results/compat.json")
	flag.Parse()
	if err := run(strings.Split(*only, ","), harness.Kind(*kind), *write, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func run(names []string, kind harness.Kind, write, docs bool) error {
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
	failed := 0
	for _, name := range names {
		row, err := runRow(name, kind)
		if err != nil {
			return err
		}
		report.Rows = append(report.Rows, row)
		fmt.Println(row.line())
		for _, s := range row.Skipped {
			fmt.Printf("    not run: %s: %s\n", s.Test, s.Why)
		}
		for _, f := range row.Failed {
			fmt.Printf("    FAILED: %s\n%s\n", f.Test, indent(f.Why))
		}
		if !row.ok() {
			failed++
		}
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
		return fmt.Errorf("%d of %d rows failed", failed, len(names))
	}
	return nil
}

func indent(s string) string {
	return "        " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n        ")
}
