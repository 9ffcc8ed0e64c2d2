package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
)

// table prints rows aligned for people.
type table struct {
	header []string
	rows   [][]string
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.header, "\t"))
	for _, r := range t.rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	return tw.Flush()
}

// asJSON says whether -o json was asked for.
func asJSON(c *cli.Context) (bool, error) {
	switch v := c.String("output"); v {
	case "json":
		return true, nil
	case "text":
		return false, nil
	default:
		return false, usagef("--output %q: want text or json", v)
	}
}

// show prints v as JSON when asked: a value of ours whose names are in snake_case, with
// the unit at the end, and whose lists are [] when they are empty, never null, else what text makes of it.
func show(c *cli.Context, v any, text func(io.Writer) error) error {
	js, err := asJSON(c)
	if err != nil {
		return err
	}
	if js {
		return printJSON(c.App.Writer, v)
	}
	return text(c.App.Writer)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// ids prints node or partition ids as "1,2,3", "-" for none.
func ids(list []int32) string {
	if len(list) == 0 {
		return "-"
	}
	parts := make([]string, len(list))
	for i, id := range list {
		parts[i] = fmt.Sprint(id)
	}
	return strings.Join(parts, ",")
}

// plural is "1 topic", "2 topics".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sizeText is a size for people: "512 B", "1.5 MiB".
func sizeText(sizeBytes int64) string {
	if sizeBytes < 1024 {
		return fmt.Sprintf("%d B", sizeBytes)
	}
	value, unit := float64(sizeBytes), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		value /= 1024
		if value < 1024 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
