package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server/config"
)

// A folder of --ephemeral is PREFIX* in the temporary folder and holds three things: the
// data, a lock that its process holds as long as it lives, and a mark, written once the
// lock is held. So a marked folder whose lock nobody holds was left by a kill -9.
const (
	ephemeralPrefix = "barnabas-ephemeral-"
	ephemeralData   = "data"
	ephemeralLock   = "lock"
	ephemeralMark   = "temporary.txt"
	ephemeralText   = "The data folder of a barnabas --ephemeral. When its broker was killed, the next one removes all of this.\n"
)

// ephemeral is the temporary data folder of --ephemeral; the zero value is none.
type ephemeral struct {
	settings []config.Setting
	// remove takes the folder away again; it may be called twice.
	remove func()
	// swept counts the folders of killed brokers that were removed.
	swept int
}

func ephemeralFolder(c *cli.Context) (ephemeral, error) {
	if !c.Bool("ephemeral") {
		return ephemeral{remove: func() {}}, nil
	}
	if err := oneFolder(c); err != nil {
		return ephemeral{}, err
	}
	swept := sweepEphemeral(os.TempDir())
	data, remove, err := makeEphemeral(os.TempDir())
	if err != nil {
		return ephemeral{}, fmt.Errorf("--ephemeral: %w", err)
	}
	set := config.Setting{Key: config.LogDirs.Name, Value: data, Where: "flag --ephemeral"}
	return ephemeral{settings: []config.Setting{set}, remove: remove, swept: swept}, nil
}

// oneFolder refuses a data folder beside --ephemeral, which makes its own.
func oneFolder(c *cli.Context) error {
	if c.Bool("ephemeral") && c.IsSet("data") {
		return usagef("--data and --ephemeral: want one of the two")
	}
	return nil
}

// makeEphemeral makes a folder in temp. Where the file system has no locks it goes
// without the mark, and stays after a kill.
func makeEphemeral(temp string) (data string, remove func(), err error) {
	folder, err := os.MkdirTemp(temp, ephemeralPrefix)
	if err != nil {
		return "", nil, err
	}
	release := func() {}
	remove = func() {
		release() // Windows removes no open file
		_ = os.RemoveAll(folder)
	}
	if lock, err := vfs.OS().Lock(filepath.Join(folder, ephemeralLock)); err == nil {
		release = func() { _ = lock.Close() }
		if err := os.WriteFile(filepath.Join(folder, ephemeralMark), []byte(ephemeralText), 0o600); err != nil {
			remove()
			return "", nil, err
		}
	}
	data = filepath.Join(folder, ephemeralData)
	if err := os.Mkdir(data, 0o700); err != nil {
		remove()
		return "", nil, err
	}
	return data, remove, nil
}

// sweepEphemeral removes the folders in temp that brokers of this user have left which
// were killed, and says how many. What it is not certain of it leaves.
func sweepEphemeral(temp string) (removed int) {
	folders, err := filepath.Glob(filepath.Join(temp, ephemeralPrefix+"*"))
	if err != nil {
		return 0
	}
	for _, folder := range folders {
		if !isEphemeral(folder) {
			continue
		}
		lock, err := vfs.OS().Lock(filepath.Join(folder, ephemeralLock))
		if err != nil {
			continue // its broker runs, or another one sweeps
		}
		err = os.RemoveAll(filepath.Join(folder, ephemeralData))
		_ = lock.Close()
		if err == nil && os.RemoveAll(folder) == nil {
			removed++
		}
	}
	return removed
}

// isEphemeral says whether folder is certain to be one that makeEphemeral has made for
// this user: a folder that nobody else may write to, with our mark and nothing else.
func isEphemeral(folder string) bool {
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() || !ownedPrivately(info) {
		return false
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	types := map[string]fs.FileMode{ephemeralData: fs.ModeDir, ephemeralLock: 0, ephemeralMark: 0}
	for _, e := range entries {
		if want, known := types[e.Name()]; !known || e.Type() != want {
			return false
		}
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ephemeralLock }) {
		return false
	}
	text, err := os.ReadFile(filepath.Join(folder, ephemeralMark))
	return err == nil && string(text) == ephemeralText
}
