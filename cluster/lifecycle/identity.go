package lifecycle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/storage"
)

const (
	// metaFile is in Kafka's own format, version 1.
	metaFile    = "meta.properties"
	metaTemp    = metaFile + ".made"
	metaVersion = 1
	// metaBytesMax bounds what is read of it.
	metaBytesMax = 64 << 10
	lockFile     = ".lock"
	// kafkaMetadata is the folder of Apache Kafka's own metadata log.
	kafkaMetadata = "__cluster_metadata-0"
	// clusterIDMax bounds a given cluster id; Kafka makes 22 characters.
	clusterIDMax = 200
	// defaultNodeID is what many clients' test set-ups assume.
	defaultNodeID = 1
)

// Identity is who a data folder is. It is made once and never changes.
type Identity struct {
	ClusterID string
	NodeID    int32
	// DirectoryID names the folder itself, in Kafka's 22 characters.
	DirectoryID string
	// QuorumID names the folder among the voters; it comes from DirectoryID.
	QuorumID uint64
	// Founded says that the identity was made just now.
	Founded bool
}

// Wanted is what the configuration asks for.
type Wanted struct {
	// ClusterID is "" when any will do.
	ClusterID string
	// NodeID is nil when any will do.
	NodeID *int32
}

// StoreDir is where the embedded store of a data folder lives.
func StoreDir(dir string) string { return filepath.Join(dir, "kv") }

// Open reads the identity of the data folder dir, or makes one in a folder that
// is new or empty; it is durable then. A folder of another cluster or node, of a
// newer version, or with content that is not ours is refused untouched.
func Open(fsys vfs.FS, dir string, want Wanted, rng *rand.Rand) (Identity, error) {
	if err := checkClusterID(want.ClusterID); err != nil {
		return Identity{}, err
	}
	id, err := readFolder(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = checkNew(fsys, dir); err == nil {
			id, err = found(fsys, dir, want, rng)
		}
	}
	if err == nil {
		err = id.check(want)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("data folder %s: %w", dir, err)
	}
	return id, nil
}

func checkClusterID(id string) error {
	bad := strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' })
	if bad || len(id) > clusterIDMax {
		return fmt.Errorf("cluster id %q: up to %d printable ASCII characters are possible, without spaces and backslashes", id, clusterIDMax)
	}
	return nil
}

func (id Identity) check(want Wanted) error {
	if want.ClusterID != "" && want.ClusterID != id.ClusterID {
		return fmt.Errorf("it belongs to cluster %s, but cluster %s is asked for: choose another folder, or drop the cluster id",
			id.ClusterID, want.ClusterID)
	}
	if want.NodeID != nil && *want.NodeID != id.NodeID {
		return fmt.Errorf("it belongs to node %d, but node.id is %d: choose another folder, or the folder's node id",
			id.NodeID, *want.NodeID)
	}
	return nil
}

// readFolder is read for a name that may be no folder's.
func readFolder(fsys vfs.FS, dir string) (Identity, error) {
	if err := vfs.CheckFolder(fsys, dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; choose another with --data", err)
		}
		return Identity{}, err
	}
	return read(fsys, dir)
}

// read takes the identity from meta.properties; fs.ErrNotExist without one.
func read(fsys vfs.FS, dir string) (Identity, error) {
	data, err := readFile(fsys, filepath.Join(dir, metaFile))
	if err != nil {
		return Identity{}, err
	}
	meta, err := storage.ParseMetaProperties(data)
	if err != nil {
		return Identity{}, fmt.Errorf("%s: %w", metaFile, err)
	}
	switch {
	case meta.Version > metaVersion:
		return Identity{}, fmt.Errorf("%s has version %d, which only a newer version of Barnabas reads", metaFile, meta.Version)
	case meta.Version < metaVersion && meta.NodeID >= 0:
		return Identity{}, fmt.Errorf("%s has version %d, from a Kafka that still used ZooKeeper", metaFile, meta.Version)
	case meta.ClusterID == "" || meta.NodeID < 0:
		return Identity{}, fmt.Errorf("%s lacks cluster.id or node.id", metaFile)
	}
	if _, err := fsys.Stat(filepath.Join(dir, kafkaMetadata)); err == nil {
		return Identity{}, fmt.Errorf("it is the data folder of an Apache Kafka broker; `barnabas import --from` takes its topics over into another folder")
	}
	id := Identity{ClusterID: meta.ClusterID, NodeID: meta.NodeID, DirectoryID: meta.DirectoryID}
	if id.QuorumID, err = quorumID(meta.DirectoryID); err != nil {
		return Identity{}, fmt.Errorf("%s: %w", metaFile, err)
	}
	return id, nil
}

func quorumID(directoryID string) (uint64, error) {
	raw, err := storage.ParseID(directoryID)
	if err != nil {
		return 0, fmt.Errorf("directory.id %q is not an id", directoryID)
	}
	id := binary.BigEndian.Uint64(raw[:8])
	if id == 0 || id >= math.MaxUint64-1 {
		return 0, fmt.Errorf("directory.id %q is reserved", directoryID)
	}
	return id, nil
}

// checkNew refuses a folder that holds what somebody else put there.
func checkNew(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case lockFile, metaTemp, "lost+found":
			// A start that was interrupted, or a file system's own.
		default:
			return fmt.Errorf("it holds %s, but no %s: it is not a Barnabas data folder; choose an empty one", e.Name(), metaFile)
		}
	}
	return nil
}

// found makes the identity under the folder's lock, so that of two that start at
// once one founds and the other finds.
func found(fsys vfs.FS, dir string, want Wanted, rng *rand.Rand) (Identity, error) {
	if err := vfs.MkdirAllSync(fsys, dir, 0o755); err != nil {
		return Identity{}, err
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return Identity{}, err
	}
	defer lock.Close()
	id, err := read(fsys, dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	id = Identity{ClusterID: want.ClusterID, NodeID: defaultNodeID, Founded: true}
	if id.ClusterID == "" {
		id.ClusterID = newID(rng)
	}
	if want.NodeID != nil {
		id.NodeID = *want.NodeID
	}
	for id.QuorumID == 0 {
		id.DirectoryID = newID(rng)
		id.QuorumID, _ = quorumID(id.DirectoryID) // a reserved id is drawn again
	}
	meta := storage.MetaProperties{
		Version: metaVersion, ClusterID: id.ClusterID, NodeID: id.NodeID, DirectoryID: id.DirectoryID,
	}
	return id, writeFile(fsys, dir, meta.Encode())
}

// newID is a random (version 4) id in Kafka's 22 characters, which do not begin
// with '-': tools would take it for an option.
func newID(rng *rand.Rand) string {
	for {
		var id [16]byte
		binary.BigEndian.PutUint64(id[:8], rng.Uint64())
		binary.BigEndian.PutUint64(id[8:], rng.Uint64())
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
		if text := storage.FormatID(id); text[0] != '-' {
			return text
		}
	}
}

// writeFile makes meta.properties appear whole and durable.
func writeFile(fsys vfs.FS, dir string, data []byte) error {
	temp := filepath.Join(dir, metaTemp)
	f, err := fsys.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(temp, filepath.Join(dir, metaFile)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

func readFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, metaBytesMax+1))
	if err == nil && len(data) > metaBytesMax {
		err = errors.New(strconv.Itoa(len(data)) + " bytes and more are too many")
	}
	return data, err
}
