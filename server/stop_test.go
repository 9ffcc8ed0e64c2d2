package server

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// A broker stops while a member waits for the others of its group to join again, which
// may take half an hour: it is told to look for the coordinator, and the stop is clean.
func TestStopDoesNotWaitForGroups(t *testing.T) {
	n := start(t, vfs.NewMem(), load(t, testDir))
	cl := client(t, n)
	joinAlone(t, cl, "g", nil)
	a := &asker{addr: n.Addrs()[0].String()}
	defer a.close()
	answer := make(chan string, 1)
	go func() {
		got, err := a.ask(`JoinGroup v3 {"Group":"g","SessionTimeoutMillis":1800000,"RebalanceTimeoutMillis":1800000,"ProtocolType":"any","Protocols":[{"Name":"p"}]}`)
		if err != nil {
			got = err.Error()
		}
		answer <- got
	}()
	adm := kadm.NewClient(cl)
	eventually(t, "the second member waits", func() bool {
		described, err := adm.DescribeGroups(within(t), "g")
		return err == nil && described["g"].State == "PreparingRebalance"
	})
	if err := stop(n); err != nil {
		t.Error(err)
	}
	if got := <-answer; !strings.Contains(got, `"ErrorCode":16`) {
		t.Errorf("answered %s", got)
	}
}
