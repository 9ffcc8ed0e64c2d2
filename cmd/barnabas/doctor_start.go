package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/cluster/lifecycle"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server/config"
	"github.com/barnabas-mq/barnabas/server/network"
)

// fewFiles is a limit of open files that a laptop's work can reach.
const fewFiles = 4096

// wouldBe examines what a start would meet. The error is a wrong call.
func (e *examination) wouldBe(c *cli.Context, environ []string) error {
	static, warnings, err := loadConfig(c, environ)
	if err != nil {
		return err
	}
	e.ok("settings", "they can be used")
	for _, w := range warnings {
		e.note("settings", "", "%s", w)
	}
	snap := static.Snapshot()
	for _, l := range static.Listeners() {
		e.port(l.Name+" port", l.Address(), "--listeners")
		e.advertised(l)
	}
	if admin := config.AdminListener.Get(snap); admin != "off" {
		e.port("admin port", admin, "--admin")
	}
	e.folder(snap)
	e.openFiles()
	return nil
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
func (e *examination) folder(snap *config.Snapshot) {
	dir, err := filepath.Abs(snap.DataDir())
	if err != nil {
		e.bad("data folder", "", "%v", err)
		return
	}
	id := config.NodeID.Get(snap)
	fsys := vfs.OS()
	ident, founded, err := lifecycle.Check(fsys, dir, lifecycle.Wanted{ClusterID: config.ClusterID.Get(snap), NodeID: &id})
	switch {
	case err != nil:
		e.bad("data folder", "", "%v", err)
		return
	case !founded:
		e.ok("data folder", "%s will be made at the first start", dir)
	case e.held(fsys, dir):
		return
	default:
		e.ok("data folder", "%s belongs to node %d of cluster %s", dir, ident.NodeID, ident.ClusterID)
	}
	e.room(fsys, dir, snap)
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

// room looks at the nearest folder that exists.
func (e *examination) room(fsys vfs.FS, dir string, snap *config.Snapshot) {
	at := dir
	for {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
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
