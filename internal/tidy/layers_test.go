package tidy

import (
	"strings"
	"testing"
)

// layers is the import order: a package may import only what stands in an
// earlier line. Packages of one line are blind to each other, except below
// internal, where the order of the Go compiler is enough.
var layers = [][]string{
	{"internal"},
	{"protocol"},
	{"protocol/batch", "protocol/wire"},
	{"storage/segment", "storage/producer", "storage/compact"},
	{"storage"},
	{"cluster/metadata"},
	{"cluster/link"},
	{"cluster/replica", "cluster/quorum", "cluster/controller", "cluster/lifecycle"},
	{"coordinator/runtime", "coordinator/group/assignor"},
	{"coordinator/group", "coordinator/txn", "coordinator/share"},
	{"server/config"},
	{"server/auth", "server/quota", "server/clientmetrics"},
	{"server/importer"},
	{"server/network"},
	{"server/api"},
	{"console"},
	{"server/admin"},
	{"server"},
	{"cmd"},
}

// owners says which package alone imports a library, so that it can be changed
// in one place. Tests may use any of them.
var owners = map[string]string{
	"github.com/panjf2000/gnet":         "server/network",
	"github.com/cockroachdb/pebble":     "internal/kv",
	"go.etcd.io/raft":                   "cluster/quorum",
	"github.com/urfave/cli":             "cmd/barnabas",
	"github.com/klauspost/compress":     "protocol/batch",
	"github.com/pierrec/lz4":            "protocol/batch",
	"github.com/prometheus":             "internal/telemetry",
	"github.com/twmb/franz-go/pkg/kgo":  "cmd/barnabas",
	"github.com/twmb/franz-go/pkg/kadm": "cmd/barnabas",
	"google.golang.org/protobuf":        "server/clientmetrics",
	// A template makes the linker keep every method: docs/decisions/0004-binary-size.md.
	"text/template": "nobody",
	"html/template": "nobody",
}

// layerOf is the line of layers that pkg belongs to, -1 for none.
func layerOf(pkg string) int {
	best, length := -1, -1
	for i, line := range layers {
		for _, name := range line {
			if (pkg == name || strings.HasPrefix(pkg, name+"/")) && len(name) > length {
				best, length = i, len(name)
			}
		}
	}
	return best
}

func TestImportOrder(t *testing.T) {
	for _, s := range sources(t) {
		from := layerOf(s.pkg)
		if from < 0 {
			t.Errorf("%s: package %s is in no layer of layers_test.go", s.path, s.pkg)
			continue
		}
		if s.test {
			continue // tests beside a package may wire it to its neighbours
		}
		for _, imp := range s.imports {
			checkImport(t, s, from, imp)
		}
	}
}

func checkImport(t *testing.T, s source, from int, imp string) {
	t.Helper()
	for lib, owner := range owners {
		if strings.HasPrefix(imp, lib) && (imp == lib || imp[len(lib)] == '/') && s.pkg != owner {
			t.Errorf("%s imports %s, which only %s may", s.path, imp, owner)
		}
	}
	pkg, ours := strings.CutPrefix(imp, module+"/")
	if !ours || pkg == s.pkg {
		return
	}
	to := layerOf(pkg)
	if to > from || (to == from && !strings.HasPrefix(pkg, "internal/") && !strings.HasPrefix(pkg, "cmd/")) {
		t.Errorf("%s imports %s, which does not stand before it in the layer list", s.path, pkg)
	}
}

func TestPackagePurpose(t *testing.T) {
	purpose := map[string]string{}
	for _, s := range sources(t) {
		if _, ok := purpose[s.pkg]; !ok && !s.test {
			purpose[s.pkg] = ""
		}
		if s.file.Doc != nil && !s.test {
			purpose[s.pkg] = s.file.Doc.Text()
		}
	}
	for pkg, text := range purpose {
		if !strings.Contains(text, ".") {
			t.Errorf("package %s has no sentence of purpose above its package clause (doc.go)", pkg)
		}
	}
}
