package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

const interval = 200

func newEnv(fs vfs.FS) *Env { return &Env{FS: fs, Files: NewFiles(fs, 4), Maps: NewMaps(64 << 20)} }

func osEnv(t testing.TB) (*Env, string) { return newEnv(vfs.OS()), t.TempDir() }

// makeBatch builds n records from offset on, one every tick milliseconds.
func makeBatch(offset, timestampMs int64, n, valueBytes int) batch.View {
	b := batch.NewBuilder(batch.BuilderOptions{})
	for i := range n {
		b.Add(timestampMs+int64(i), nil, bytes.Repeat([]byte{'v'}, valueBytes))
	}
	v := b.Build()
	v.SetBaseOffset(offset)
	return v
}

func info(v batch.View) BatchInfo {
	return BatchInfo{SizeBytes: len(v), LastOffset: v.LastOffset(), MaxTimestampMs: v.MaxTimestamp()}
}

// fill appends batches of 1 to 3 records from base on, with timestamps 10 apart.
func fill(t testing.TB, s *Segment, base int64, batches, valueBytes int) (all []batch.View, next int64) {
	t.Helper()
	next = base
	for i := range batches {
		v := makeBatch(next, 1000+int64(i)*10, i%3+1, valueBytes)
		if err := s.Append(v, []BatchInfo{info(v)}, interval, 1<<30); err != nil {
			t.Fatal(err)
		}
		all, next = append(all, v), v.NextOffset()
	}
	return all, next
}

func create(t testing.TB, env *Env, dir string, base int64) *Segment {
	t.Helper()
	s, err := Create(env, dir, base, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sizes(t testing.TB, env *Env, dir string, base int64) Sizes {
	t.Helper()
	size := func(suffix string) int64 {
		fi, err := env.FS.Stat(path(dir, base, suffix))
		if err != nil {
			return -1
		}
		return fi.Size()
	}
	return Sizes{LogBytes: size(LogSuffix), IndexBytes: size(IndexSuffix), TimeIndexBytes: size(TimeIndexSuffix), TxnIndexBytes: size(TxnIndexSuffix)}
}

func TestReadFindsEveryOffset(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 100)
	all, next := fill(t, s, 100, 300, 30)
	check := func(s *Segment) {
		t.Helper()
		for _, want := range all {
			for o := want.BaseOffset(); o < want.NextOffset(); o++ {
				for _, max := range []int{1, 500, 5000, RegionFrom} {
					r, err := s.Read(o, s.SizeBytes(), max, true)
					if err != nil || !bytes.HasPrefix(r.Data, want) {
						t.Fatalf("read at %d of at most %d: %d bytes, %v", o, max, len(r.Data), err)
					}
					if len(r.Data) > max && len(r.Data) != len(want) {
						t.Fatalf("read at %d: %d bytes instead of %d", o, len(r.Data), max)
					}
				}
			}
		}
		if r, err := s.Read(next, s.SizeBytes(), 100, true); err != nil || !r.Beyond {
			t.Fatalf("read behind the end: %+v, %v", r, err)
		}
		if r, err := s.Read(100, s.SizeBytes(), 5, false); err != nil || r.Data != nil || r.Beyond {
			t.Fatalf("read of less than a batch: %+v, %v", r, err)
		}
	}
	check(s)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	reopened, err := Open(env, dir, 100, sizes(t, env, dir, 100))
	if err != nil {
		t.Fatal(err)
	}
	check(reopened)
	if got, err := reopened.LoadEnd(); err != nil || got != next {
		t.Fatalf("the end is %d, not %d: %v", got, next, err)
	}
}

func TestRegion(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 0)
	all, _ := fill(t, s, 0, 100, 10_000)
	file := bytes.Join(func() (b [][]byte) {
		for _, v := range all {
			b = append(b, v)
		}
		return b
	}(), nil)
	from := int64(len(all[0]) + len(all[1]))
	r, err := s.Read(all[2].BaseOffset(), s.SizeBytes(), 700_000, true)
	if err != nil || r.Region == nil || r.Region.Len() != 700_000 {
		t.Fatalf("%+v, %v", r, err)
	}
	got := make([]byte, r.Region.Len())
	if n, err := r.Region.ReadAt(got, 0); err != nil || !bytes.Equal(got[:n], file[from:from+700_000]) {
		t.Fatalf("the region has other bytes (%v)", err)
	}
	if n, err := r.Region.ReadAt(make([]byte, 10), 699_995); n != 5 || err == nil {
		t.Fatalf("read %d bytes over the region's end: %v", n, err)
	}
	if m := r.Region.Bytes(); m != nil && !bytes.Equal(m, got) {
		t.Fatal("the map has other bytes")
	}
	if m := r.Region.Bytes(); m != nil && env.Maps.Bytes() != 700_000 {
		t.Fatalf("%d bytes are counted as mapped", env.Maps.Bytes())
	}
	// The region outlives its segment.
	if _, err := s.Rename(DeletedSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Region.ReadAt(got[:10], 5); err != nil {
		t.Fatalf("the region died with its segment: %v", err)
	}
	r.Region.Release()
	if env.Maps.Bytes() != 0 || env.Files.Open() > 2 {
		t.Fatalf("%d bytes mapped and %d files open after the release", env.Maps.Bytes(), env.Files.Open())
	}
}

func TestMapsAreBounded(t *testing.T) {
	env, dir := osEnv(t)
	env.Maps = NewMaps(300_000)
	s := create(t, env, dir, 0)
	fill(t, s, 0, 60, 10_000)
	var regions []*Region
	for range 3 {
		r, err := s.Read(0, s.SizeBytes(), RegionFrom, true)
		if err != nil || r.Region == nil {
			t.Fatal(err)
		}
		regions = append(regions, r.Region)
	}
	if env.Maps.Bytes() > 300_000 || regions[2].Bytes() != nil {
		t.Fatalf("%d bytes are mapped", env.Maps.Bytes())
	}
	for _, r := range regions {
		r.Release()
	}
}

// TestIndexFiles holds the entries against Kafka's rules: the last offset and the
// position of a batch, interval bytes apart; the largest timestamp so far.
func TestIndexFiles(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 50)
	all, _ := fill(t, s, 50, 40, 20)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	position, since := int64(0), int64(0)
	var index, times []byte
	for _, v := range all {
		if since > interval {
			index = binary.BigEndian.AppendUint32(index, uint32(v.LastOffset()-50))
			index = binary.BigEndian.AppendUint32(index, uint32(position))
			times = binary.BigEndian.AppendUint64(times, uint64(v.MaxTimestamp()))
			times = binary.BigEndian.AppendUint32(times, uint32(v.LastOffset()-50))
			since = 0
		}
		since += int64(len(v))
		position += int64(len(v))
	}
	last := all[len(all)-1]
	if end := times[len(times)-12:]; binary.BigEndian.Uint64(end) != uint64(last.MaxTimestamp()) {
		times = binary.BigEndian.AppendUint64(times, uint64(last.MaxTimestamp()))
		times = binary.BigEndian.AppendUint32(times, uint32(last.LastOffset()-50))
	}
	for suffix, want := range map[string][]byte{IndexSuffix: index, TimeIndexSuffix: times} {
		got, err := os.ReadFile(path(dir, 50, suffix))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s has\n%x, not\n%x (%v)", suffix, got, want, err)
		}
	}
}

func TestIndexOfManyEntries(t *testing.T) {
	env, dir := osEnv(t)
	x := newIndex(env.Files.Ref(filepath.Join(dir, "x.index"), os.O_RDWR|os.O_CREATE), OffsetEntrySize, 0, false)
	const n = 3 * tailMax
	for i := range int64(n) {
		if err := x.append(entry{key: i * 10, value: uint32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if x.len() != n || len(x.state.Load().tail) > tailMax {
		t.Fatalf("%d entries, %d of them in memory", x.len(), len(x.state.Load().tail))
	}
	for _, key := range []int64{0, 5, 9, 10, 12345, n*10 - 11, n * 10} {
		e, ok, err := x.floor(key)
		if want := min(key/10, n-1); err != nil || !ok || e.key != want*10 {
			t.Fatalf("floor of %d: %+v, %v, %v", key, e, ok, err)
		}
		byValue, ok, err := x.floorBy(func(e entry) int64 { return int64(e.value) }, key)
		if want := min(key, n-1); err != nil || !ok || int64(byValue.value) != want {
			t.Fatalf("floor by value of %d: %+v, %v, %v", key, byValue, ok, err)
		}
	}
	if _, ok, _ := x.floor(-1); ok {
		t.Fatal("found something below the first entry")
	}
	if err := x.truncate(func(e entry) bool { return e.key >= 7000 }); err != nil || x.len() != 700 {
		t.Fatalf("%d entries after the cut: %v", x.len(), err)
	}
	if e, ok, _ := x.last(); !ok || e.key != 6990 {
		t.Fatalf("the last entry is %+v", e)
	}
}

// TestKafkasActiveIndex opens index files as a running Kafka leaves them: longer
// than their entries, zeros behind.
func TestKafkasActiveIndex(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 0)
	_, next := fill(t, s, 0, 50, 20)
	if err := s.WriteIndexes(); err != nil {
		t.Fatal(err)
	}
	want := s.offsets.len()
	s.Close()
	for _, suffix := range []string{IndexSuffix, TimeIndexSuffix} {
		if err := os.Truncate(path(dir, 0, suffix), 24*1000); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(env, dir, 0, sizes(t, env, dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	if end, err := s.LoadEnd(); err != nil || end != next || s.offsets.len() != want {
		t.Fatalf("end %d, %d entries, %v", end, s.offsets.len(), err)
	}
}

func TestTimestamps(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 10)
	// Timestamps 100..102, then older ones, then 300..302.
	for i, v := range []batch.View{makeBatch(10, 100, 3, 5), makeBatch(13, 50, 3, 5), makeBatch(16, 300, 3, 5), makeBatch(19, 200, 2, 5)} {
		if err := s.Append(v, []BatchInfo{info(v)}, 0, 1<<30); err != nil {
			t.Fatal(i, err)
		}
	}
	for _, test := range []struct{ ts, from, want int64 }{
		{0, 0, 10}, {101, 0, 11}, {102, 0, 12}, {103, 0, 16}, {301, 0, 17}, {302, 0, 18}, {303, 0, -1}, {50, 13, 13}, {0, 14, 14}, {150, 19, 19},
	} {
		f, ok, err := s.FindTimestamp(test.ts, test.from)
		if err != nil || ok != (test.want >= 0) || ok && f.Offset != test.want {
			t.Errorf("timestamp %d from %d: %+v, %v, %v", test.ts, test.from, f, ok, err)
		}
	}
	if f, ok, err := s.FindMaxTimestamp(); err != nil || !ok || f.Offset != 18 || f.TimestampMs != 302 {
		t.Fatalf("max timestamp: %+v, %v, %v", f, ok, err)
	}
	if ts, offset, err := s.MaxTimestamp(); err != nil || ts != 302 || offset != 18 {
		t.Fatalf("max timestamp %d at %d: %v", ts, offset, err)
	}
}

func TestRecoverCutsEveryTornTail(t *testing.T) {
	whole, dir := osEnv(t)
	s := create(t, whole, dir, 0)
	all, next := fill(t, s, 0, 6, 10)
	last := all[len(all)-1]
	content, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	start := len(content) - len(last)
	for cut := start; cut <= len(content); cut++ {
		fs := vfs.NewMem()
		env := newEnv(fs)
		torn := create(t, env, "/", 0)
		f, err := torn.ref.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(content[:cut], 0); err != nil {
			t.Fatal(err)
		}
		torn.ref.Release()
		r, err := torn.Recover(RecoverOptions{IntervalBytes: interval})
		if err != nil {
			t.Fatal(err)
		}
		wantNext, wantSize := last.BaseOffset(), int64(start)
		if cut == len(content) {
			wantNext, wantSize = next, int64(len(content))
		}
		if r.NextOffset != wantNext || torn.SizeBytes() != wantSize || (r.Corrupt != nil) != (cut != start && cut != len(content)) {
			t.Fatalf("cut at %d: %+v, size %d", cut, r, torn.SizeBytes())
		}
	}
}

// TestRecoverFindsEveryFlippedByte changes one byte at a time outside of what
// the checksum does not cover: the leader epoch, and the base offset as long as
// the segment could hold it.
func TestRecoverFindsEveryFlippedByte(t *testing.T) {
	fs := vfs.NewMem()
	s := create(t, newEnv(fs), "/", 0)
	all, _ := fill(t, s, 0, 3, 10)
	second := int64(len(all[0]))
	f, err := s.ref.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer s.ref.Release()
	for i := range int64(len(all[1])) {
		if i >= 12 && i < 16 || i > 0 && i < 8 {
			continue
		}
		b := []byte{0}
		if _, err := f.ReadAt(b, second+i); err != nil {
			t.Fatal(err)
		}
		flip := byte(0x40)
		if i == 16 {
			flip = 2 // makes format v2 look like v0
		}
		if _, err := f.WriteAt([]byte{b[0] ^ flip}, second+i); err != nil {
			t.Fatal(err)
		}
		size := s.SizeBytes()
		sc := NewScanner(f, "x", 0, size, 0, true)
		for sc.Next() {
		}
		if !isCorrupt(sc.Err()) || sc.Position() != second {
			t.Fatalf("byte %d: stopped at %d with %v", i, sc.Position(), sc.Err())
		}
		if _, err := f.WriteAt(b, second+i); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOldMessagesAreNotCut has a whole message of format v1 in the log: it is
// refused by name instead of being taken for damage.
func TestOldMessagesAreNotCut(t *testing.T) {
	fs := vfs.NewMem()
	s := create(t, newEnv(fs), "/", 0)
	fill(t, s, 0, 2, 10)
	message := make([]byte, 100)
	binary.BigEndian.PutUint64(message, 50)
	binary.BigEndian.PutUint32(message[8:], uint32(len(message)-12))
	message[16] = 1
	binary.BigEndian.PutUint32(message[12:], crc32.ChecksumIEEE(message[16:]))
	size := s.SizeBytes()
	f, err := s.ref.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer s.ref.Release()
	if _, err := f.WriteAt(message, size); err != nil {
		t.Fatal(err)
	}
	_, err = s.Recover(RecoverOptions{IntervalBytes: interval})
	if info, statErr := f.Stat(); !errors.Is(err, batch.ErrOldMagic) || statErr != nil || info.Size() != size+int64(len(message)) {
		t.Fatalf("%v; %v", err, statErr)
	}
}

func TestRecoverFromTheMiddleKeepsIndexes(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 0)
	all, next := fill(t, s, 0, 200, 30)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	for _, suffix := range []string{IndexSuffix, TimeIndexSuffix} {
		want[suffix], _ = os.ReadFile(path(dir, 0, suffix))
	}
	s.Close()
	for _, from := range []int64{0, 1, 57, 58, 300, next} {
		s, err := Open(env, dir, 0, sizes(t, env, dir, 0))
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		r, err := s.Recover(RecoverOptions{From: from, IntervalBytes: interval, Each: func(Header) { seen++ }})
		if err != nil || r.NextOffset != next || r.CutBytes != 0 {
			t.Fatalf("from %d: %+v, %v", from, r, err)
		}
		if from == next && seen > 12 {
			t.Fatalf("%d of %d batches were read again although all was synced", seen, len(all))
		}
		if err := s.Seal(); err != nil {
			t.Fatal(err)
		}
		for suffix, w := range want {
			if got, _ := os.ReadFile(path(dir, 0, suffix)); !bytes.Equal(got, w) {
				t.Fatalf("recovery from %d made another %s:\n%x\n%x", from, suffix, got, w)
			}
		}
		s.Close()
	}
}

// TestLyingIndex points an index entry anywhere: reads still find the offset.
func TestLyingIndex(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 0)
	all, _ := fill(t, s, 0, 60, 30)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	sound, err := os.ReadFile(path(dir, 0, IndexSuffix))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		bad := bytes.Clone(sound)
		e := r.IntN(len(bad) / 8)
		binary.BigEndian.PutUint32(bad[e*8+4:], uint32(r.Int64N(s.SizeBytes()+100)))
		if err := os.WriteFile(path(dir, 0, IndexSuffix), bad, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Open(env, dir, 0, sizes(t, env, dir, 0))
		if err != nil {
			t.Fatal(err)
		}
		want := all[r.IntN(len(all))]
		got, err := s.Read(want.BaseOffset(), s.SizeBytes(), 100, true)
		if err != nil || !bytes.Equal(got.Data, want) {
			t.Fatalf("entry %d -> %x: read at %d: %d bytes, %v", e, bad[e*8:e*8+8], want.BaseOffset(), len(got.Data), err)
		}
		s.Close()
	}
}

func TestTruncate(t *testing.T) {
	for at := range int64(12) {
		env, dir := osEnv(t)
		s := create(t, env, dir, 0)
		all, _ := fill(t, s, 0, 6, 100) // batches start at 0, 1, 3, 6, 7, 9
		end, err := s.Truncate(at)
		if err != nil {
			t.Fatal(err)
		}
		var want, size int64
		for _, v := range all {
			if v.NextOffset() <= at {
				want, size = v.NextOffset(), size+int64(len(v))
			}
		}
		if end != want || s.SizeBytes() != size {
			t.Fatalf("truncated to %d: end %d and %d bytes, not %d and %d", at, end, s.SizeBytes(), want, size)
		}
		v := makeBatch(end, 5, 1, 3)
		if err := s.Append(v, []BatchInfo{info(v)}, interval, 1<<30); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Read(end, s.SizeBytes(), 1000, true); err != nil || !bytes.Equal(r.Data, v) {
			t.Fatalf("truncated to %d: read %d bytes, %v", at, len(r.Data), err)
		}
		s.Close()
	}
}

func TestFilesAreBounded(t *testing.T) {
	env, dir := osEnv(t)
	var refs []*FileRef
	for i := range 20 {
		refs = append(refs, env.Files.Ref(filepath.Join(dir, fmt.Sprint(i)), os.O_RDWR|os.O_CREATE))
	}
	held, err := refs[0].Acquire()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, r := range refs {
			if _, err := r.Acquire(); err != nil {
				t.Fatal(err)
			}
			r.Release()
		}
	}
	if n := env.Files.Open(); n > 5 {
		t.Fatalf("%d files are open, 4 are allowed", n)
	}
	refs[0].Close()
	if _, err := held.WriteAt([]byte("x"), 0); err != nil {
		t.Fatalf("a file in use was closed: %v", err)
	}
	refs[0].Release()
	if _, err := held.WriteAt([]byte("x"), 0); err == nil {
		t.Fatal("the file is still open after its last user")
	}
	if _, err := refs[0].Acquire(); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("acquired a closed file: %v", err)
	}
}

func TestFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"00000000000000000042.log": "42 .log true", "00000000000000000042.log.deleted": "42 .log.deleted true",
		"42.log": "0  false", "0000000000000000004x.log": "0  false", "leader-epoch-checkpoint": "0  false", "-0000000000000000042.log": "0  false",
	} {
		offset, suffix, ok := ParseFileName(name)
		if got := fmt.Sprint(offset, " ", suffix, " ", ok); got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

func TestDump(t *testing.T) {
	env, dir := osEnv(t)
	s := create(t, env, dir, 5)
	all, _ := fill(t, s, 5, 30, 50)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	open := func(suffix string) (*os.File, int64) {
		f, err := os.Open(path(dir, 5, suffix))
		if err != nil {
			t.Fatal(err)
		}
		fi, _ := f.Stat()
		return f, fi.Size()
	}
	var out strings.Builder
	f, n := open(LogSuffix)
	if err := DumpLog(&out, "x", f, 5, n); err != nil || strings.Count(out.String(), "\n") != len(all) {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.HasPrefix(out.String(), "baseOffset: 5 lastOffset: 5 count: 1 position: 0 size: ") {
		t.Fatal(out.String())
	}
	f, n = open(IndexSuffix)
	out.Reset()
	if err := DumpOffsetIndex(&out, f, 5, n); err != nil || strings.Count(out.String(), "\n") != s.offsets.len() {
		t.Fatalf("%v\n%s", err, out.String())
	}
	f, n = open(TimeIndexSuffix)
	out.Reset()
	if err := DumpTimeIndex(&out, f, 5, n); err != nil || strings.Count(out.String(), "\n") != s.times.len() {
		t.Fatalf("%v\n%s", err, out.String())
	}
}
