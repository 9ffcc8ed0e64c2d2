package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Options say which broker to start and where.
type Options struct {
	Kind       Kind
	Dir        string            // holds the data folder, the log and the properties; kept over restarts
	Port       int               // 0 takes a free one
	AdminPort  int               // 0 takes a free one; Apache Kafka's controller listens on it
	Properties map[string]string // Kafka's configuration keys
	HeapMB     int               // Apache Kafka's heap, 512 when 0
}

// Broker is a running process. Its fields and methods are for one goroutine, but Kill, which any may call.
type Broker struct {
	Options
	cmd    *exec.Cmd
	exited chan struct{} // closed once the process is gone
	err    error         // what Wait said; read after exited
}

// Start runs a broker and returns once it answers a Metadata request.
func Start(ctx context.Context, o Options) (*Broker, error) {
	b, err := Launch(o)
	if err != nil {
		return nil, err
	}
	if err := b.WaitReady(ctx); err != nil {
		b.Kill()
		return nil, fmt.Errorf("%w; its log ends:\n%s", err, b.LogTail(4000))
	}
	return b, nil
}

// Launch runs a broker without waiting for it.
func Launch(o Options) (*Broker, error) {
	if err := fillIn(&o); err != nil {
		return nil, err
	}
	command := barnabasCommand
	if o.Kind != Barnabas {
		command = kafkaCommand
	}
	cmd, err := command(o)
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(filepath.Join(o.Dir, "broker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Kind, err)
	}
	b := &Broker{Options: o, cmd: cmd, exited: make(chan struct{})}
	go func() {
		b.err = cmd.Wait()
		close(b.exited)
	}()
	return b, nil
}

func fillIn(o *Options) error {
	if o.Kind == "" {
		o.Kind = KindFromEnv()
	}
	if o.Dir == "" {
		return errors.New("harness: no folder given")
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	for _, port := range []*int{&o.Port, &o.AdminPort} {
		if *port == 0 {
			free, err := FreePort()
			if err != nil {
				return err
			}
			*port = free
		}
	}
	return nil
}

// WaitReady polls until the broker answers Metadata with itself in it, the process ends or ctx does.
func (b *Broker) WaitReady(ctx context.Context) error {
	for {
		last := probe(b.Addr())
		if last == nil {
			return nil
		}
		select {
		case <-b.exited:
			return fmt.Errorf("%s ended before it was ready: %v", b.Kind, b.err)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last: %v)", b.Kind, ctx.Err(), last)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Addr is what a client is told to connect to.
func (b *Broker) Addr() string { return fmt.Sprintf("127.0.0.1:%d", b.Port) }

// PID is the broker's process id.
func (b *Broker) PID() int { return b.cmd.Process.Pid }

// DataDir is where the partitions' folders are.
func (o Options) DataDir() string { return filepath.Join(o.Dir, "data") }

// Exited is closed once the process is gone.
func (b *Broker) Exited() <-chan struct{} { return b.exited }

// Kill is kill -9, and returns when the process is gone. Without a broker, as after a start that failed, it does nothing.
func (b *Broker) Kill() {
	if b == nil {
		return
	}
	_ = b.cmd.Process.Kill()
	<-b.exited
}

// Stop is SIGTERM. The broker must end by itself, with success, before ctx does.
func (b *Broker) Stop(ctx context.Context) error {
	select {
	case <-b.exited:
		return fmt.Errorf("%s had ended before it was stopped: %v", b.Kind, b.err)
	default:
	}
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-b.exited:
	case <-ctx.Done():
		b.Kill()
		return fmt.Errorf("%s did not stop: %w; its log ends:\n%s", b.Kind, ctx.Err(), b.LogTail(4000))
	}
	const jvmAfterSIGTERM = 143 // the JVM ends with 128+15 after a clean shutdown
	var exit *exec.ExitError
	if b.Kind != Barnabas && errors.As(b.err, &exit) && exit.ExitCode() == jvmAfterSIGTERM {
		return nil
	}
	if b.err != nil {
		return fmt.Errorf("%s stopped with %w; its log ends:\n%s", b.Kind, b.err, b.LogTail(4000))
	}
	return nil
}

// LogTail returns the end of what the broker has printed.
func (b *Broker) LogTail(limit int) string {
	log, err := os.ReadFile(filepath.Join(b.Dir, "broker.log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-limit):])
}

// Panics returns what the broker's log has of panics and data races, so that a run can fail on them.
func (b *Broker) Panics() string {
	log, err := os.ReadFile(filepath.Join(b.Dir, "broker.log"))
	if err != nil {
		return err.Error()
	}
	for _, mark := range []string{"panic", "fatal error:", "DATA RACE"} {
		if i := bytes.Index(log, []byte(mark)); i >= 0 {
			return strings.TrimSpace(string(log[max(0, i-200):min(len(log), i+3000)]))
		}
	}
	return ""
}
