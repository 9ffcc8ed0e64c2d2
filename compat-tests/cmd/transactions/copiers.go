package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// copiers run Kafka's TransactionalMessageCopier per input partition, again and again: one copies what was there when
// it was started, and ends.
type copiers struct {
	o    options
	addr string
	mu   sync.Mutex
	over bool // none is started any more
	all  []*copier
	done sync.WaitGroup
}

type copier struct {
	partition int
	cmd       *exec.Cmd // nil between two runs; under the mutex of copiers
	kills     int
	last      bool // the run that begins now is the last
	failures  int  // runs in sequence that ended badly without a kill
	err       error
}

func newCopiers(o options, addr string) *copiers {
	c := &copiers{o: o, addr: addr}
	for p := range o.partitions {
		one := &copier{partition: p}
		c.all = append(c.all, one)
		c.done.Go(func() { c.loop(one) })
	}
	return c
}

func (c *copiers) command(one *copier) *exec.Cmd {
	args := harness.JavaArgs(c.o.libs, 128, "org.apache.kafka.tools.TransactionalMessageCopier",
		"--broker-list", c.addr, "--input-topic", input, "--input-partition", strconv.Itoa(one.partition), "--output-topic", output,
		"--consumer-group", "copiers", "--transaction-size", "300", "--transaction-timeout", "30000",
		"--transactional-id", fmt.Sprintf("copier-%d", one.partition), "--enable-random-aborts", "--use-group-metadata")
	cmd := exec.Command("java", append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

const failuresMax = 20

var errOver = errors.New("the run is over")

func (c *copiers) loop(one *copier) {
	for {
		last, err := c.runOnce(one)
		c.mu.Lock()
		one.cmd = nil
		if err == nil {
			one.failures = 0
		} else if one.failures++; one.failures > failuresMax {
			one.err = fmt.Errorf("the copier of partition %d failed %d times in sequence: %w", one.partition, one.failures, err)
			last = true
		}
		stop := last && (err == nil || one.err != nil)
		c.mu.Unlock()
		if stop {
			return
		}
	}
}

func (c *copiers) runOnce(one *copier) (last bool, err error) {
	log, err := os.OpenFile(filepath.Join(c.o.dir, fmt.Sprintf("copier-%d.log", one.partition)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return false, err
	}
	defer log.Close()
	cmd := c.command(one)
	cmd.Stdout, cmd.Stderr = log, log
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return true, errOver
	}
	last = one.last
	kills := one.kills
	err = cmd.Start()
	one.cmd = cmd
	c.mu.Unlock()
	if err != nil {
		return last, err
	}
	err = cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.kills > kills {
		one.failures = 0
		return false, nil
	}
	return last, err
}

func (c *copiers) killOne(partition int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.all[partition]; one.cmd != nil {
		one.kills++
		_ = one.cmd.Process.Kill()
	}
}

func (c *copiers) killed() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		n += one.kills
	}
	return n
}

// finish lets each copier copy the rest.
func (c *copiers) finish(ctx context.Context) error {
	c.mu.Lock()
	for _, one := range c.all {
		one.last = true
	}
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		c.done.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience):
		return fmt.Errorf("the copiers do not end, %v after the last kill", patience)
	}
	var errs []error
	for _, one := range c.all {
		errs = append(errs, one.err)
	}
	return errors.Join(errs...)
}

// kill ends whatever still runs, and returns when it is gone.
func (c *copiers) kill() {
	c.mu.Lock()
	c.over = true
	for _, one := range c.all {
		one.failures = failuresMax
		if one.cmd != nil {
			_ = one.cmd.Process.Kill()
		}
	}
	c.mu.Unlock()
	c.done.Wait()
}
