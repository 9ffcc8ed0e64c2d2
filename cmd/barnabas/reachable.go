package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// advertiseHint is what to do when the address that clients are told does not work.
const advertiseHint = "set --advertise (advertised.listeners) to an address that this machine can reach, or leave it out"

// toldReachable fails when a broker answers at the address that it was asked at, but none
// of those that it tells clients can be connected to: records would be waited for, in
// silence, as long as patience lasts. With some of several it is the client's to find one.
func toldReachable(ctx context.Context, client *kgo.Client) error {
	seeds := client.OptValue(kgo.SeedBrokers).([]string)
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var failed error
	for _, b := range toldBrokers(ctx, client) {
		address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		if slices.Contains(seeds, address) {
			return nil
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			return nil
		}
		if failed == nil {
			failed = fmt.Errorf("the broker tells clients here that broker %d is at %s, which they cannot reach: %w\n  -> %s", b.NodeID, address, rootCause(err), advertiseHint)
		}
	}
	return failed
}

// toldBrokers is what the first address of --broker that answers says.
func toldBrokers(ctx context.Context, client *kgo.Client) []kmsg.MetadataResponseBroker {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; nil would be all
	for _, seed := range client.SeedBrokers() {
		resp, err := seed.Request(ctx, req)
		if err == nil {
			return resp.(*kmsg.MetadataResponse).Brokers
		}
	}
	return nil
}

// explainLost is err, or why no broker could be reached when that is the reason.
func explainLost(ctx context.Context, client *kgo.Client, err error) error {
	var k *kerr.Error
	var usage *usageError
	if err == nil || errors.As(err, &k) || errors.As(err, &usage) {
		return err
	}
	if why := toldReachable(context.WithoutCancel(ctx), client); why != nil {
		return why
	}
	return err
}
