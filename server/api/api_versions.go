package api

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cluster/controller"
	"github.com/barnabas-mq/barnabas/cluster/metadata"
	"github.com/barnabas-mq/barnabas/protocol"
)

// MetadataVersionFeature is the feature whose level says which metadata records
// a cluster may write.
const MetadataVersionFeature = controller.MetadataVersion

// TransactionVersionFeature is the feature whose level says how transactions end:
// from 2 on each end raises the producer's epoch (KIP-890).
const TransactionVersionFeature = "transaction.version"

// Features are the supported levels: the one place that says them.
// metadata.version is Kafka's range from 3.3 to 4.4; the others are at 0 until the
// APIs behind their first level are served, because a client that sees a level
// uses it. kraft.version 0 is a quorum whose voters do not change.
var Features = []controller.FeatureRange{
	{Name: MetadataVersionFeature, Min: 7, Max: 33},
	{Name: "eligible.leader.replicas.version"},
	{Name: GroupVersionFeature, Max: 1},
	{Name: "kraft.version"},
	{Name: "share.version"},
	{Name: "streams.version"},
	{Name: TransactionVersionFeature, Max: 2},
}

// softwareName is what KIP-511 allows a client to call itself and its version.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// firstZeroFeatureVersion is the first version whose clients understand a
// feature range that begins at 0 (KAFKA-17011).
const firstZeroFeatureVersion = 4

// apiVersions serves ApiVersions v0-5.
func (h *Handlers) apiVersions(c *Call, req *kmsg.ApiVersionsRequest, resp *kmsg.ApiVersionsResponse) {
	defer c.Reply()
	if err := h.checkApiVersions(c, req); err != nil {
		resp.ErrorCode = protocol.Code(err)
		return
	}
	if c.Header.Version >= 3 {
		s := sessionOf(c.Conn())
		s.softwareName, s.softwareVersion = req.ClientSoftwareName, req.ClientSoftwareVersion
	}
	telemetry := h.advertisesTelemetry()
	for _, row := range h.table {
		if isTelemetry(row.Key) && !telemetry {
			continue
		}
		key := kmsg.NewApiVersionsResponseApiKey()
		key.ApiKey, key.MinVersion, key.MaxVersion = row.Key, row.Min, row.Max
		resp.ApiKeys = append(resp.ApiKeys, key)
	}
	h.fillFeatures(c.Header.Version, resp)
}

func (h *Handlers) checkApiVersions(c *Call, req *kmsg.ApiVersionsRequest) error {
	if c.Header.Version >= 3 && !(softwareName.MatchString(req.ClientSoftwareName) && softwareName.MatchString(req.ClientSoftwareVersion)) {
		return protocol.Errorf(kerr.InvalidRequest, "client software %q %q", req.ClientSoftwareName, req.ClientSoftwareVersion)
	}
	if c.Header.Version < 5 {
		return nil
	}
	// KIP-1242: a client that says whom it wants to talk to is told when it was
	// led to somebody else.
	switch {
	case req.ClusterID == nil && req.NodeID == -1:
		return nil
	case req.ClusterID == nil || req.NodeID == -1:
		return protocol.Errorf(kerr.InvalidRequest, "cluster id and node id come together")
	case *req.ClusterID != h.Image().ClusterID || req.NodeID != h.NodeID:
		return protocol.Errorf(kerr.RebootstrapRequired, "this is node %d of cluster %s", h.NodeID, h.Image().ClusterID)
	}
	return nil
}

func (h *Handlers) fillFeatures(version int16, resp *kmsg.ApiVersionsResponse) {
	for _, f := range Features {
		if f.Min == 0 && version < firstZeroFeatureVersion {
			continue
		}
		s := kmsg.NewApiVersionsResponseSupportedFeature()
		s.Name, s.MinVersion, s.MaxVersion = f.Name, f.Min, f.Max
		resp.SupportedFeatures = append(resp.SupportedFeatures, s)
	}
	img := h.Image()
	resp.FinalizedFeaturesEpoch = max(img.Offset, 0)
	for _, f := range Features {
		if level := FinalizedLevel(img, f.Name); level > 0 {
			l := kmsg.NewApiVersionsResponseFinalizedFeature()
			l.Name, l.MaxVersionLevel, l.MinVersionLevel = f.Name, level, level
			resp.FinalizedFeatures = append(resp.FinalizedFeatures, l)
		}
	}
}

// FinalizedLevel is a feature's level in the cluster; metadata.version is the
// newest where no record says otherwise.
func FinalizedLevel(img *metadata.Image, feature string) int16 {
	level := img.Feature(feature)
	if level == 0 && feature == MetadataVersionFeature {
		return Features[0].Max
	}
	return level
}

// unknownApiVersions answers an ApiVersions request whose version is not known:
// in version 0, with the range of ApiVersions itself (KIP-511).
func (h *Handlers) unknownApiVersions(c *Call) {
	c.Header.Version = 0
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	key := kmsg.NewApiVersionsResponseApiKey()
	key.ApiKey, key.MinVersion, key.MaxVersion = c.row.Key, c.row.Min, c.row.Max
	resp.ApiKeys = append(resp.ApiKeys, key)
	c.resp = resp
	c.Reply()
}
