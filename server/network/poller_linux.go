package network

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// outPoller tells connections when their full sockets have room again. gnet has no
// such event without its own output buffer, which is unbounded.
type outPoller struct {
	epfd, wakefd int
	done         chan struct{}

	mu    sync.Mutex
	conns map[int]*Conn // by fd, as registered with epfd
}

func newOutPoller() (*outPoller, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err == nil {
		err = unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, wakefd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wakefd)})
		if err != nil {
			unix.Close(wakefd)
		}
	}
	if err != nil {
		unix.Close(epfd)
		return nil, fmt.Errorf("make an output poller: %w", err)
	}
	p := &outPoller{epfd: epfd, wakefd: wakefd, done: make(chan struct{}), conns: map[int]*Conn{}}
	go p.run()
	return p, nil
}

// arm has c.writable called once, when fd has room or an error.
func (p *outPoller) arm(fd int, c *Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	op := unix.EPOLL_CTL_MOD
	if _, ok := p.conns[fd]; !ok {
		op = unix.EPOLL_CTL_ADD
	}
	p.conns[fd] = c
	if err := unix.EpollCtl(p.epfd, op, fd, &unix.EpollEvent{Events: unix.EPOLLOUT | unix.EPOLLONESHOT, Fd: int32(fd)}); err != nil {
		if op == unix.EPOLL_CTL_ADD {
			delete(p.conns, fd)
		}
		return fmt.Errorf("wait for the socket: %w", err)
	}
	return nil
}

// del forgets fd. It must be called before fd is closed: another duplicate would
// keep it registered, and its number may be another connection's next.
func (p *outPoller) del(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.conns[fd]; ok {
		delete(p.conns, fd)
		// It fails only if fd is not registered, which is what we want.
		_ = unix.EpollCtl(p.epfd, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

func (p *outPoller) run() {
	defer close(p.done)
	events := make([]unix.EpollEvent, 128)
	for {
		n, err := unix.EpollWait(p.epfd, events, -1)
		if err != nil && err != unix.EINTR {
			return // the poller was closed
		}
		for _, ev := range events[:max(n, 0)] {
			if int(ev.Fd) == p.wakefd {
				return
			}
			p.mu.Lock()
			c := p.conns[int(ev.Fd)]
			p.mu.Unlock()
			if c != nil {
				// Sending may wait for the disk, and is nobody else's concern.
				go c.writable()
			}
		}
	}
}

func (p *outPoller) stop() {
	one := [8]byte{1}
	// An eventfd takes 2^64-2 such writes; there is one.
	_, _ = unix.Write(p.wakefd, one[:])
	<-p.done
	unix.Close(p.wakefd)
	unix.Close(p.epfd)
}
