package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/internal/clock"
	"github.com/barnabas-mq/barnabas/internal/telemetry"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/server"
	"github.com/barnabas-mq/barnabas/server/config"
)

// stopTimeout is how long a stop waits for requests that were accepted; what is
// still open then is closed. Container runtimes kill after 10 s.
const stopTimeout = 8 * time.Second

// sameWish is how soon after the first a signal is not a second wish: `timeout`
// and process groups deliver one stop twice.
const sameWish = 500 * time.Millisecond

func serveCommand() *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "start a broker", Action: serve, Flags: serveFlags(),
		Description: "Serves until SIGINT, SIGTERM or SIGHUP, which finish what was accepted; a second signal stops at once.\n" +
			"Settings: flags before environment variables (KAFKA_NUM_PARTITIONS=3 is num.partitions) before the\n" +
			"file of --config before the defaults. A wrong value is refused by name, with exit code 2; a key\n" +
			"that nobody knows is a warning, with the nearest one that is known.",
	}
}

func serve(c *cli.Context) error {
	started := time.Now()
	if c.Args().Present() {
		return usagef("serve takes no arguments, only flags; %q is one", c.Args().First())
	}
	temporary, err := ephemeralFolder(c)
	if err != nil {
		return err
	}
	defer temporary.remove()
	static, warnings, err := loadConfig(c, os.Environ(), temporary.settings...)
	if err != nil {
		return err
	}
	snap := static.Snapshot()
	level := &slog.LevelVar{}
	parsed, err := telemetry.ParseLevel(config.LogLevel.Get(snap))
	if err != nil {
		return err
	}
	level.Set(parsed)
	format := config.LogFormat.Get(snap)
	log := telemetry.NewLogger(format, level, c.App.ErrWriter)
	for _, w := range warnings {
		log.Warn(w)
	}
	if temporary.swept > 0 {
		log.Info("removed what brokers with --ephemeral have left that were killed", "folders", temporary.swept)
	}

	stop := newStopper(log, temporary.remove)
	defer stop.release()
	node, err := server.Start(server.Env{
		Clock: clock.Real(), FS: vfs.OS(), Random: rand.Uint64, Log: log, LogLevel: level,
		Metrics: telemetry.NewRegistry(), Version: version,
	}, static)
	if err != nil {
		return startFailure(err, snap.DataDir())
	}
	b := bannerOf(node, static, c.Bool("ephemeral"), time.Since(started))
	if format == telemetry.FormatJSON {
		log.Info("ready", "version", version, "listeners", b.addresses(), "data", b.data, "durability", b.durability, "admin", b.admin)
	} else if !c.Bool("quiet") {
		b.print(c.App.Writer)
	}
	return untilStopped(node, stop, log)
}

// untilStopped waits for a signal or the node's failure, and stops it.
func untilStopped(node *server.Node, stop *stopper, log *slog.Logger) error {
	select {
	case <-stop.asked:
		log.Info("stopping; a second signal stops at once")
	case <-node.FolderRemoved():
		return errors.New("the data folder was removed while the broker ran; it stops, because nothing that it acknowledged would be kept")
	case <-node.Failed():
		err := node.Err()
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return errors.Join(fmt.Errorf("the broker cannot go on: %w", err), node.Stop(ctx))
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := node.Stop(ctx); err != nil {
		return fmt.Errorf("stopped, but not cleanly: %w", err)
	}
	log.Info("stopped")
	return nil
}

// stopper turns the first signal into a request to stop and the second into an
// end at once. Its goroutine owns nothing else and ends with release.
type stopper struct {
	asked   chan struct{}
	signals chan os.Signal
}

func newStopper(log *slog.Logger, remove func()) *stopper {
	s := &stopper{asked: make(chan struct{}), signals: make(chan os.Signal, 2)}
	signal.Notify(s.signals, stopSignals()...)
	go func() {
		if _, ok := <-s.signals; !ok {
			return
		}
		close(s.asked)
		asked := time.Now()
		for range s.signals {
			if time.Since(asked) < sameWish {
				continue
			}
			log.Warn("stopped at once by a second signal; the next start recovers what was not flushed")
			remove()
			os.Exit(exitFailure)
		}
	}()
	return s
}

// release gives the signals back to the system.
func (s *stopper) release() {
	signal.Stop(s.signals)
	close(s.signals)
}

// bannerLines is what the banner is written to; a closed pipe is no reason to stop.
type bannerLines struct{ w io.Writer }

func (p bannerLines) line(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format+"\n", args...) }

// startFailure says what to do about the failures that people meet most.
func startFailure(err error, data string) error {
	text := "the broker does not start: %w"
	var network *net.OpError
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("the broker does not start: the data folder %s is in use by another broker; stop that one, or choose another folder with --data", data)
	case errors.Is(err, syscall.EADDRINUSE):
		text += "\nAnother program listens there. --port and --admin take other addresses, and --admin off none; `barnabas doctor` says more"
	case errors.As(err, &network) && !errors.Is(err, os.ErrPermission):
		text += "\n--port, --listeners and --admin take other addresses; `barnabas doctor` says more"
	case errors.Is(err, os.ErrPermission):
		text += "\nThis user may not do that: ports below 1024 and other users' folders need rights. --port and --data take others"
	}
	return fmt.Errorf(text, err)
}
