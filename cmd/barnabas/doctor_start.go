package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/server/network"
)

// fewFiles is a limit of open files that a laptop's work can reach.
const fewFiles = 4096

// wouldBe examines what a start would meet. The error is a wrong call.
func (e *examination) wouldBe(c *cli.Context, environ []string) error {
	in, fileErr, err := configInput(c, environ)
	if err != nil {
		return err
	}
	e.openFiles()
	static := e.settings(in, fileErr)
	if static == nil {
		return nil
	}
	snap := static.Snapshot()
	for _, l := range static.Listeners() {
		e.port(l.Name+" port", l.Address(), "--listeners")
		e.advertised(l)
	}
	if admin := config.AdminListener.Get(snap); admin != "off" {
		e.port("admin port", admin, "--admin")
	}
	if !c.Bool("ephemeral") {
		e.folder(static)
	}
	return nil
}

// settings looks at the settings and answers with those that can be used.
func (e *examination) settings(in config.Input, fileErr error) *config.Static {
	if fileErr != nil {
		e.bad("settings", "name a file with --config, or leave it out", "--config: %v", fileErr)
	}
	static, warnings, err := config.Load(in)
	for _, w := range warnings {
		e.note("settings", "", "%s", w)
	}
	var refusal *config.Refusal
	if !errors.As(err, &refusal) {
		if fileErr == nil {
			e.ok("settings", "they can be used")
		}
		return static
	}
	for _, p := range refusal.Problems {
		e.bad("settings", "correct it; a start is refused", "%s", p)
	}
	return config.Sound(in)
}

func (e *examination) port(check, address, flag string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		e.bad(check, "stop what uses it, or choose another with "+flag, "%s cannot be opened: %v", address, rootCause(err))
		return
	}
	_ = l.Close()
	e.ok(check, "%s is free", address)
}

func (e *examination) advertised(l config.Listener) {
	if l.AdvertisedHost == "" {
		return
	}
	addrs, err := net.LookupHost(l.AdvertisedHost)
	if err != nil {
		e.bad("advertised", "correct advertised.listeners, or leave it out so that each client is told what it connected to",
			"%s, which clients are told, has no address: %v", l.AdvertisedHost, err)
		return
	}
	e.ok("advertised", "%s is %v", l.AdvertisedHost, addrs)
}

// folder looks at the data folder without making or changing it.
func (e *examination) folder(static *config.Static) {
	snap := static.Snapshot()
	dir, err := filepath.Abs(snap.DataDir())
	if err != nil {
		e.bad("data folder", "", "%s", strings.TrimPrefix(err.Error(), "data folder "))
		return
	}
	id := config.NodeID.Get(snap)
	fsys := vfs.OS()
	ident, founded, err := lifecycle.Check(fsys, dir, lifecycle.Wanted{ClusterID: config.ClusterID.Get(snap), NodeID: &id})
	switch {
	case err != nil:
		e.bad("data folder", permissionAdvice(err), "%s", strings.TrimPrefix(err.Error(), "data folder "))
		return
	case !founded:
		if at, ok := e.writable(dir); ok {
			e.ok("data folder", "%s will be made at the first start", dir)
			e.room(fsys, at, snap)
		}
		return
	case e.held(fsys, dir):
		return
	default:
		e.ok("data folder", "%s belongs to node %d of cluster %s", dir, ident.NodeID, ident.ClusterID)
		e.metadata(static)
	}
	if at, ok := e.writable(dir); ok {
		e.room(fsys, at, snap)
	}
}

// metadata reads the metadata log of a stopped broker's folder, as a start would.
func (e *examination) metadata(static *config.Static) {
	view, err := server.Look(offlineEnv(slog.New(slog.DiscardHandler)), static)
	if err == nil {
		img := view.Image()
		e.ok("metadata", "%s of %s can be read", plural(img.PartitionCount(), "partition"), plural(img.TopicCount(), "topic"))
		return
	}
	text, advice, damaged := strings.Cut(err.Error(), ". Nothing was changed. ")
	if !damaged {
		advice = permissionAdvice(err)
	}
	e.bad("metadata", advice, "%s", text)
}

// permissionAdvice is what to do about files that this user may not read, "" when err
// is something else.
func permissionAdvice(err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	return "give this user the right to it, or run the command as the user whose files they are"
}

// offlineEnv is the world of a node that serves nobody.
func offlineEnv(log *slog.Logger) server.Env {
	return server.Env{Clock: clock.Real(), FS: vfs.OS(), Random: rand.Uint64, Log: log, Version: version}
}

// writable tries in the nearest folder that exists what a start would do there.
func (e *examination) writable(dir string) (at string, ok bool) {
	at = dir
	info, err := os.Stat(at)
	for err != nil && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	const advice = "give this user the right to write there, or choose another folder with --data"
	switch {
	case err != nil:
		e.bad("data folder", advice, "%s cannot be looked at: %v", at, err)
		return at, false
	case !info.IsDir():
		e.bad("data folder", "choose another folder with --data", "%s is a file", at)
		return at, false
	case at == dir:
		if f, err := os.CreateTemp(at, ".doctor-"); err != nil {
			e.bad("data folder", advice, "nothing can be written in %s: %v", at, rootCause(err))
			return at, false
		} else {
			_ = errors.Join(f.Close(), os.Remove(f.Name())) // an empty file is nothing to speak of
		}
	default:
		made, err := os.MkdirTemp(at, ".doctor-")
		if err != nil {
			e.bad("data folder", advice, "%s cannot be made: no folder can be made in %s", dir, at)
			return at, false
		}
		_ = os.Remove(made)
	}
	return at, true
}

// held says whether another process has the folder.
func (e *examination) held(fsys vfs.FS, dir string) bool {
	name := filepath.Join(dir, ".lock")
	if _, err := fsys.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	lock, err := fsys.Lock(name)
	if errors.Is(err, vfs.ErrLocked) {
		e.bad("data folder", "stop the other broker, or choose another folder with --data", "%s is in use by another process", dir)
		return true
	}
	if err != nil {
		e.bad("data folder", "give this user the right to write there", "%s cannot be used: %v", dir, err)
		return true
	}
	_ = lock.Close()
	return false
}

// room looks at the free space at a folder that exists.
func (e *examination) room(fsys vfs.FS, at string, snap *config.Snapshot) {
	free, _, err := fsys.Usage(at)
	if err != nil {
		e.note("disk", "", "the free space at %s is unknown: %v", at, err)
		return
	}
	reserve := config.ReserveBytes.Get(snap)
	if free <= uint64(reserve) {
		e.bad("disk", "make room, or lower barnabas.storage.reserve.bytes", "%s free at %s, and %s are kept in reserve: every produce would be refused",
			sizeText(int64(free)), at, sizeText(reserve))
		return
	}
	e.ok("disk", "%s free at %s", sizeText(int64(free)), at)
}

func (e *examination) openFiles() {
	limit, err := network.RaiseNoFile()
	switch {
	case err != nil || limit == 0:
		e.note("open files", "", "the limit is unknown")
	case limit < fewFiles:
		e.note("open files", "raise it with `ulimit -n`", "only %d are allowed, which bounds connections and partitions", limit)
	default:
		e.ok("open files", "%d are allowed", limit)
	}
}
