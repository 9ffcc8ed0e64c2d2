package tidy

import (
	"go/ast"
	"strings"
	"testing"
)

// banned lists the calls that bypass what is injected, with what to use instead.
var banned = []struct {
	pkg   string
	names string // space-separated; a trailing * matches any ending
	use   string
	// allowed are the packages that wrap the real thing.
	allowed []string
}{
	{"time", "Now Since Until Sleep After AfterFunc NewTimer NewTicker Tick", "internal/clock", []string{"internal/clock", "internal/vfs", "server/network", "cmd"}},
	{"os", "Open OpenFile Create ReadFile WriteFile Remove RemoveAll Rename Mkdir* Stat Lstat ReadDir Truncate Link Symlink", "internal/vfs", []string{"internal/vfs", "server/network", "cmd"}},
	{"ioutil", "*", "internal/vfs", nil},
	{"net", "Dial* Listen ListenConfig ListenIP ListenMulticastUDP ListenPacket ListenTCP ListenUDP ListenUnix*", "server/network or internal/memnet", []string{"internal/memnet", "server/network", "cmd"}},
	{"rand", "Int* N Float* Perm Shuffle Read Uint*", "an injected *rand.Rand", []string{"cmd"}},
}

// waits are the calls by which a test would hope that something has happened.
var waits = []string{"Sleep"}

func TestInjected(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		names := packageNames(s)
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || x.Obj != nil {
				return true
			}
			checkCall(t, s, names[x.Name], sel)
			return true
		})
	}
}

func TestNoSleepingTests(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test || importsAny(s, "testing/synctest") {
			continue // inside a bubble time is virtual
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && x.Name == "time" && contains(waits, sel.Sel.Name) {
				t.Errorf("%s: time.%s in a test: wait for the condition itself, or use synctest", s.fset.Position(sel.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
}

// packageNames maps the names under which a file knows its imports to the last
// element of their paths.
func packageNames(s source) map[string]string {
	names := map[string]string{}
	for _, i := range s.file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		base := path[strings.LastIndexByte(path, '/')+1:]
		if path == "math/rand/v2" {
			base = "rand"
		}
		if path == "crypto/rand" {
			continue // secrets and ids may come from the system
		}
		name := base
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = base
	}
	return names
}

func checkCall(t *testing.T, s source, pkg string, sel *ast.SelectorExpr) {
	t.Helper()
	for _, b := range banned {
		if b.pkg != pkg || !matches(b.names, sel.Sel.Name) || below(s.pkg, b.allowed) {
			continue
		}
		t.Errorf("%s: %s.%s bypasses what is injected: use %s", s.fset.Position(sel.Pos()), pkg, sel.Sel.Name, b.use)
	}
}

func matches(names, name string) bool {
	for _, n := range strings.Fields(names) {
		if prefix, ok := strings.CutSuffix(n, "*"); ok && strings.HasPrefix(name, prefix) || n == name {
			return true
		}
	}
	return false
}

func below(pkg string, folders []string) bool {
	for _, f := range folders {
		if pkg == f || strings.HasPrefix(pkg, f+"/") {
			return true
		}
	}
	return false
}

func importsAny(s source, path string) bool { return contains(s.imports, path) }

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
