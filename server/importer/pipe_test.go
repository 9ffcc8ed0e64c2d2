package importer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// pipeFS has a named pipe in place of one file: whoever opens it would wait for ever.
type pipeFS struct {
	*vfs.Mem
	t    *testing.T
	pipe string
}

type pipeInfo struct{ fs.FileInfo }

func (pipeInfo) Mode() fs.FileMode { return fs.ModeNamedPipe | 0o644 }

func (p pipeFS) Stat(name string) (fs.FileInfo, error) {
	info, err := p.Mem.Stat(name)
	if err == nil && filepath.Clean(name) == p.pipe {
		return pipeInfo{info}, nil
	}
	return info, err
}

func (p pipeFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	p.see(name)
	return p.Mem.OpenFile(name, flag, perm)
}

func (p pipeFS) ReadLock(name string) (io.Closer, error) {
	p.see(name)
	return p.Mem.ReadLock(name)
}

func (p pipeFS) see(name string) {
	if filepath.Clean(name) == p.pipe {
		p.t.Errorf("the pipe %s was opened", name)
	}
}

// Nothing of a source is opened that is not a file, whichever it is.
func TestNamedPipesAreNotOpened(t *testing.T) {
	var files []string
	var walk func(m *vfs.Mem, dir string)
	walk = func(m *vfs.Mem, dir string) {
		entries, err := m.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := filepath.Join(dir, e.Name()); e.IsDir() {
				walk(m, name)
			} else {
				files = append(files, name)
			}
		}
	}
	whole := vfs.NewMem()
	written(t, whole, true)
	walk(whole, sourceDir)
	for _, name := range files {
		m := vfs.NewMem()
		written(t, m, true)
		_, _, err := imports(t, pipeFS{m, t, filepath.Clean(name)}, Options{})
		if filepath.Base(name) == cleanFile {
			continue // that it is there is all that counts
		}
		if err == nil || !strings.Contains(err.Error(), filepath.Base(name)) || !strings.Contains(err.Error(), "it is a named pipe, not a file") {
			t.Errorf("with a pipe as %s: %v", name, err)
		}
	}
}

// An end that was asked for ends it while what groups have committed is read too.
func TestPlanIsInterrupted(t *testing.T) {
	m := vfs.NewMem()
	written(t, m, true)
	s, err := Open(m, []string{sourceDir}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := s.committed(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
