package lifecycle

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func rng() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func node(id int32) *int32 { return &id }

func TestFoundedOnceAndFoundAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	made, err := Open(vfs.OS(), dir, Wanted{}, rng())
	if err != nil {
		t.Fatal(err)
	}
	if !made.Founded || made.NodeID != 1 || len(made.ClusterID) != 22 || len(made.DirectoryID) != 22 || made.QuorumID == 0 {
		t.Fatalf("founded %+v", made)
	}
	data, err := os.ReadFile(filepath.Join(dir, "meta.properties"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"version=1", "cluster.id=" + made.ClusterID, "node.id=1", "directory.id=" + made.DirectoryID} {
		if !strings.Contains(string(data), line+"\n") {
			t.Errorf("meta.properties lacks %q:\n%s", line, data)
		}
	}
	again, err := Open(vfs.OS(), dir, Wanted{ClusterID: made.ClusterID, NodeID: node(1)}, rand.New(rand.NewPCG(3, 4)))
	made.Founded = false
	if err != nil || again != made {
		t.Fatalf("opened again: %+v, %v; want %+v", again, err, made)
	}
}

func TestGivenIdentityIsTaken(t *testing.T) {
	id, err := Open(vfs.OS(), t.TempDir(), Wanted{ClusterID: "4L6g3nShT-eMCtK--X86sw", NodeID: node(0)}, rng())
	if err != nil || id.ClusterID != "4L6g3nShT-eMCtK--X86sw" || id.NodeID != 0 {
		t.Fatalf("%+v, %v", id, err)
	}
}

// TestRefusedUntouched shows that a folder that is not ours to use stays as it
// was.
func TestRefusedUntouched(t *testing.T) {
	const ours = "version=1\ncluster.id=abc\nnode.id=1\ndirectory.id=AAAAAAAAQACAAAAAAAAAAQ\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Wanted
		says  string
	}{
		{"other cluster", map[string]string{"meta.properties": ours}, Wanted{ClusterID: "xyz"}, "belongs to cluster abc"},
		{"other node", map[string]string{"meta.properties": ours}, Wanted{NodeID: node(2)}, "belongs to node 1"},
		{"newer version", map[string]string{"meta.properties": strings.Replace(ours, "version=1", "version=2", 1)}, Wanted{}, "newer version"},
		{"ZooKeeper", map[string]string{"meta.properties": "version=0\nbroker.id=1\ncluster.id=abc\n"}, Wanted{}, "ZooKeeper"},
		{"Apache Kafka", map[string]string{"meta.properties": ours, "__cluster_metadata-0/x": ""}, Wanted{}, "Apache Kafka"},
		{"no cluster", map[string]string{"meta.properties": "version=1\nnode.id=1\n"}, Wanted{}, "lacks cluster.id"},
		{"empty", map[string]string{"meta.properties": ""}, Wanted{}, "lacks cluster.id"},
		{"no directory", map[string]string{"meta.properties": "version=1\nnode.id=1\ncluster.id=abc\n"}, Wanted{}, "directory.id"},
		{"reserved directory", map[string]string{"meta.properties": strings.Replace(ours, "AAAAAAAAQACAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAQ", 1)}, Wanted{}, "reserved"},
		{"garbage", map[string]string{"meta.properties": "what is this\n"}, Wanted{}, "meta.properties"},
		{"huge", map[string]string{"meta.properties": strings.Repeat("#\n", 100<<10)}, Wanted{}, "too many"},
		{"somebody's files", map[string]string{"holiday.jpg": "x"}, Wanted{}, "holiday.jpg"},
		{"partitions without identity", map[string]string{"orders-0/00000000000000000000.log": ""}, Wanted{}, "orders-0"},
		{"bad cluster id", map[string]string{}, Wanted{ClusterID: "a b"}, "printable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range c.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			before := list(t, dir)
			if _, err := Open(vfs.OS(), dir, c.want, rng()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v does not say %q", err, c.says)
			}
			if after := list(t, dir); after != before {
				t.Fatalf("the folder changed from\n%sto\n%s", before, after)
			}
		})
	}
}

func TestFoundingWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	lock, err := vfs.OS().Lock(filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := Open(vfs.OS(), dir, Wanted{}, rng()); err == nil {
		t.Fatal("founded in a folder that another process has locked")
	}
}

func list(t *testing.T, dir string) string {
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out.WriteString(path + ": " + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
