package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Rows run side by side, each a process, and their clients' connections take ports all the while.
func TestFreePortIsNobodyElses(t *testing.T) {
	const processes, each = 4, 200
	if os.Getenv("PRINT_PORTS") != "" {
		for range each {
			port, err := FreePort()
			fmt.Println("port", port, err)
		}
		_, _ = fmt.Scanln() // keeps them until the parent closes the pipe
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	outgoing := l.Addr().(*net.TCPAddr).Port // one of those the system gives out, all far above ours
	var mu sync.Mutex
	seen := map[string]bool{}
	var running, reading sync.WaitGroup
	release := make(chan struct{})
	for range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFreePortIsNobodyElses$")
		cmd.Env = append(os.Environ(), "PRINT_PORTS=1")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reading.Add(1)
		running.Go(func() {
			for range each {
				var port int
				var failed string
				if _, err := fmt.Fscanf(out, "port %d %s\n", &port, &failed); err != nil || failed != "<nil>" {
					t.Errorf("a process said %v, %s", err, failed)
					break
				}
				mu.Lock()
				if name := fmt.Sprint(port); seen[name] || port >= min(outgoing, 32768) {
					t.Errorf("port %s: given twice, or one of those for outgoing connections", name)
				} else {
					seen[name] = true
				}
				mu.Unlock()
			}
			reading.Done()
			<-release
			in.Close()
			_ = cmd.Wait()
		})
	}
	reading.Wait()
	close(release)
	running.Wait()
	if len(seen) != processes*each {
		t.Errorf("%d ports, want %d", len(seen), processes*each)
	}
}

// A client that asks for a killed broker's port must not be given it for its own end of the connection.
func TestPortsAreNoneOfOutgoingConnections(t *testing.T) {
	for outgoing, want := range map[string]int{"32768\t60999\n": endPort, "15000\t65535\n": 15000, "1024\t65535\n": endPort, "": endPort} {
		if got := portsEnd(outgoing); got != want {
			t.Errorf("beside outgoing connections from %q ports end at %d, want %d", outgoing, got, want)
		}
	}
}
