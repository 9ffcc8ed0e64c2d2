package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// checkCoverage wants each advertised API and version to have been asked well and badly.
func (r *run) checkCoverage() {
	for key, bounds := range r.b.ours.versions {
		req := kmsg.RequestForKey(key)
		if req == nil {
			r.faults = append(r.faults, fmt.Sprintf("API %d is advertised, but the codec does not know it", key))
			continue
		}
		for v := bounds[0]; v <= bounds[1]; v++ {
			of := r.perAPI[key][v]
			if of == nil {
				of = &coverage{}
			}
			if !of.good && !isOnly(onlyBad, key, v) {
				r.faults = append(r.faults, fmt.Sprintf("%s v%d: no good case", kmsg.NameForKey(key), v))
			}
			if !of.bad && !isOnly(onlyGood, key, v) {
				r.faults = append(r.faults, fmt.Sprintf("%s v%d: no bad case", kmsg.NameForKey(key), v))
			}
		}
	}
	sort.Strings(r.faults)
}

// only names versions of an API that cannot be asked well, or badly, and why.
type only struct {
	key      kmsg.Key
	from, to int16
	why      string
}

func isOnly(list []only, key, version int16) bool {
	for _, o := range list {
		if int16(o.key) == key && o.from <= version && version <= o.to {
			return true
		}
	}
	return false
}

// checkKnown wants every known difference to be seen still.
func (r *run) checkKnown() {
	for i := range knownDifferences {
		if k := &knownDifferences[i]; !r.used[k] {
			r.faults = append(r.faults, fmt.Sprintf("known difference %q at %q was not seen: take it out", k.Case, k.Path))
		}
	}
}

func (r *run) print() {
	unknown := r.unknown()
	for _, f := range r.faults {
		fmt.Println("FAULT ", f)
	}
	for _, d := range grouped(unknown) {
		fmt.Println(d)
	}
	fmt.Printf("compared %d answers of %d APIs: %d differences, %d of them known by name; %d faults\n",
		r.compared, len(r.perAPI), len(r.found), len(r.found)-len(unknown), len(r.faults))
}

func (r *run) unknown() (out []difference) {
	for _, d := range r.found {
		if d.Why == "" {
			out = append(out, d)
		}
	}
	return out
}

func (r *run) verdict() error {
	if n := len(r.unknown()); n > 0 || len(r.faults) > 0 {
		return fmt.Errorf("%d differences that no reason is given for, %d faults", n, len(r.faults))
	}
	return nil
}

// outcome is what results/differential.json holds.
type outcome struct {
	Compared int
	APIs     int
	Known    []known
}

func (r *run) outcome() outcome {
	return outcome{Compared: r.compared, APIs: len(r.perAPI), Known: knownDifferences}
}

func writeOutcome(file string, o outcome) error {
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// grouped prints a difference that several versions share once.
func grouped(found []difference) (out []string) {
	versions := map[difference][]int16{}
	var order []difference
	for _, d := range found {
		v := d.Version
		d.Version = 0
		d.Ours, d.Theirs = noVersion.ReplaceAllString(d.Ours, "-v*"), noVersion.ReplaceAllString(d.Theirs, "-v*")
		if versions[d] == nil {
			order = append(order, d)
		}
		versions[d] = append(versions[d], v)
	}
	for _, d := range order {
		out = append(out, fmt.Sprintf("DIFFERS  %s %s, judged by %s\n    %s\n      ours   %s\n      theirs %s", d.Case,
			strings.ReplaceAll(fmt.Sprint(versions[d]), " ", ","), d.Judge, d.Path, d.Ours, d.Theirs))
	}
	return out
}

var noVersion = regexp.MustCompile(`-v\d+`)
