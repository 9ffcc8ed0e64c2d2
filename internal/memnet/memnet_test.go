package memnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/internal/memnet"
)

func pair(t *testing.T, n *memnet.Network) (client, server net.Conn) {
	t.Helper()
	l, err := n.Listen("broker:9092")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if client, err = n.Dialer("client")(t.Context(), "tcp", "broker:9092"); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestBytesAndAddresses(t *testing.T) {
	client, server := pair(t, memnet.New())
	if got := server.LocalAddr().String(); got != "broker:9092" {
		t.Errorf("local address %s", got)
	}
	if host, _, err := net.SplitHostPort(server.RemoteAddr().String()); err != nil || host != "client" {
		t.Errorf("remote address %s", server.RemoteAddr())
	}
	sent := bytes.Repeat([]byte("0123456789"), 100_000)
	var g errgroup.Group
	g.Go(func() error {
		if _, err := client.Write(sent); err != nil {
			return err
		}
		return client.Close()
	})
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("read %d of %d bytes: %v", len(got), len(sent), err)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to a closed peer: %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
}

func TestListenAndDialErrors(t *testing.T) {
	n := memnet.New()
	l, err := n.Listen("broker:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen(l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second listener: %v", err)
	}
	if _, err := n.Dialer("c")(t.Context(), "tcp", "nobody:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial without listener: %v", err)
	}
	waiting, err := n.Dialer("c")(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
	if _, err := waiting.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read of a connection never accepted: %v", err)
	}
}

func TestDeadlinesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, memnet.New())
		start := time.Now()
		client.SetReadDeadline(start.Add(time.Minute))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("read returned after %v", d)
		}
		server.SetWriteDeadline(start.Add(time.Hour))
		if n, err := server.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || n != 64<<10 {
			t.Errorf("write: %d bytes, %v", n, err)
		}
		client.SetDeadline(time.Time{})
		if n, err := io.ReadFull(client, make([]byte, 64<<10)); err != nil {
			t.Errorf("read %d bytes: %v", n, err)
		}
		client.Close()
		server.Close()
	})
}

func TestCutHoldsEverythingUntilHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		client, server := pair(t, n)
		n.Cut("client", "broker")
		if _, err := client.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		server.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := server.Read(make([]byte, 5)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read over a cut link: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := n.Dialer("client")(ctx, "tcp", "broker:9092"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial over a cut link: %v", err)
		}
		cancel()
		other, err := n.Dialer("other")(t.Context(), "tcp", "broker:9092")
		if err != nil {
			t.Errorf("another host is cut off too: %v", err)
		}
		time.AfterFunc(time.Minute, func() { n.Heal("broker", "client") })
		server.SetReadDeadline(time.Time{})
		got := make([]byte, 5)
		if _, err := io.ReadFull(server, got); err != nil || string(got) != "hello" {
			t.Errorf("after healing: %q, %v", got, err)
		}
		n.Reset("client", "broker")
		if _, err := client.Read(got); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after reset: %v", err)
		}
		if _, err := server.Write(got); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after reset: %v", err)
		}
		other.Close()
	})
}
