package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// updateFeatures serves UpdateFeatures v0-2 (KIP-584, KIP-778).
func (h *Handlers) updateFeatures(c *Call, req *kmsg.UpdateFeaturesRequest, resp *kmsg.UpdateFeaturesResponse) {
	h.decideAnyTime(c, req, func(decided kmsg.Response, err error) {
		if err == nil {
			*resp = *decided.(*kmsg.UpdateFeaturesResponse)
			return
		}
		resp.ErrorCode, resp.ErrorMessage = protocol.Code(err), ownText(err)
	})
}
