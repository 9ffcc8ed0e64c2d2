package api

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/cluster/replica"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestRequeuedBatchIsPreparedOnce has an event loop give up an append after it
// has written LogAppendTime into the batch: the second attempt must not take
// that for the producer's, which is not allowed to set it.
func TestRequeuedBatchIsPreparedOnce(t *testing.T) {
	disk := &stallFS{FS: vfs.NewMem()}
	d := newDataBrokerOn(t, disk)
	d.make("slow", 1, func(c *replica.TopicConfig, _ *metadata.Partition) { c.Batch.LogAppendTime = true })
	dial := d.onLoops()
	big, small := dial(), dial()
	stalled, release := disk.stall("slow-0")
	first := later[*kmsg.ProduceResponse](big, 9, produceRequest("slow", metadata.TopicID{}, 0, -1, values(0, strings.Repeat("x", 100<<10))))
	<-stalled
	second := later[*kmsg.ProduceResponse](small, 9, produceRequest("slow", metadata.TopicID{}, 0, -1, values(0, "v")))
	// The loop has given the second one up once it serves this one.
	later3 := later[*kmsg.ApiVersionsResponse](dial(), 0, kmsg.NewPtrApiVersionsRequest())
	soon(t, later3)
	close(release)
	soon(t, first)
	if row := soon(t, second).Topics[0].Partitions[0]; row.ErrorCode != 0 || row.LogAppendTime <= 0 || row.BaseOffset != 1 {
		t.Fatalf("%v, %+v", kerr.ErrorForCode(row.ErrorCode), row)
	}
}
