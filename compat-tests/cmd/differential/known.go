package main

import (
	"path"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// known is a difference that is meant. Case and Path are patterns as of path.Match, with ** for anything.
type known struct {
	Case string
	Path string
	Why  string
}

func (k *known) covers(d difference) bool {
	return matches(k.Case, d.Case) && matches(k.Path, d.Path)
}

func matches(pattern, s string) bool {
	if pattern == "**" {
		return true
	}
	ok, err := path.Match(pattern, s)
	return err == nil && ok
}

var knownDifferences = []known{
	{"Fetch: one byte", "Topics?0?.Partitions?0?.RecordBatches*", "Clients of message format v1 asked for one byte get the whole converted batch from Kafka, and one message here: both are progress, and less than was asked for is closer to it."},
	{"Fetch: *", "Topics?0?.Partitions?0?.RecordBatches?*?", "Kafka pads an answer converted for clients before 0.10.2 with the beginning of a message that is cut off; clients skip it. Here an answer ends with a whole message."},
	{"DescribeConfigs: *", "Resources?0?.Configs?*?.IsDefault", "Version 0 tells whether a value is the default. Kafka 3.9 always says no; here it is told."},
	{"IncrementalAlterConfigs: an unknown operation", "*", "Kafka stumbles over it and answers UNKNOWN_SERVER_ERROR; INVALID_REQUEST says whose mistake it is."},
	{"WriteTxnMarkers: an old epoch", "*", "Kafka answers UNKNOWN_SERVER_ERROR where the code for it is INVALID_PRODUCER_EPOCH."},
	{"WriteTxnMarkers: no producer*", "*", "Kafka stumbles over it and answers UNKNOWN_SERVER_ERROR; INVALID_REQUEST says whose mistake it is."},
	{"Produce: an lz4 frame of dependent blocks", "*", "Kafka answers UNKNOWN_SERVER_ERROR to whatever it cannot decompress; INVALID_RECORD is what clients do not send again, and comes with the reason."},
	{"*: *", "*Configs?\"max.decompressed.message.bytes\"?.Value", "Batches are decompressed in bounded memory: the default is 256 MiB instead of 2 GiB, and can be changed."},
	{"*: *", "*Configs?\"min.insync.replicas\"?.Source", "Kafka's eligible leader replicas write min.insync.replicas into the cluster's configuration; the value is the same."},
}

// onlyBad are versions that no single broker without security can serve well; onlyGood those that know no error.
var (
	onlyBad = []only{
		{kmsg.OffsetCommit, 0, 0, "kept in ZooKeeper by brokers that have one; no oracle here serves it"},
		{kmsg.OffsetFetch, 0, 0, "likewise"},
		{kmsg.DescribeACLs, 0, newest, "there is no authorizer"},
		{kmsg.CreateACLs, 0, newest, "there is no authorizer"},
		{kmsg.DeleteACLs, 0, newest, "there is no authorizer"},
		{kmsg.CreateDelegationToken, 0, newest, "tokens need a SASL listener"},
		{kmsg.RenewDelegationToken, 0, newest, "tokens need a SASL listener"},
		{kmsg.ExpireDelegationToken, 0, newest, "tokens need a SASL listener"},
		{kmsg.DescribeDelegationToken, 0, newest, "tokens need a SASL listener"},
		{kmsg.SASLHandshake, 0, newest, "there is no SASL listener"},
		{kmsg.SASLAuthenticate, 0, newest, "there is no SASL listener"},
		{kmsg.UnregisterBroker, 0, newest, "the one broker cannot go"},
		{kmsg.AddRaftVoter, 0, newest, "there is one controller, and a fixed quorum"},
		{kmsg.RemoveRaftVoter, 0, newest, "there is one controller, and a fixed quorum"},
		{kmsg.UnregisterController, 0, newest, "there is one controller"},
	}
	onlyGood = []only{
		{kmsg.OffsetCommit, 0, 0, "as above"},
		{kmsg.OffsetFetch, 0, 0, "as above"},
		{kmsg.ApiVersions, 0, 2, "nothing in the request can be wrong before version 3"},
		{kmsg.DescribeCluster, 0, 0, "nothing in the request can be wrong before version 1"},
		{kmsg.FindCoordinator, 0, 0, "version 0 has a group's name and nothing that can be wrong"},
		{kmsg.ListGroups, 0, 4, "nothing in the request can be wrong before version 5"},
		{kmsg.ListConfigResources, 0, 0, "version 0 has no arguments"},
		{kmsg.ListTransactions, 0, 1, "a filter that matches nothing is no error"},
		{kmsg.ListPartitionReassignments, 0, 0, "what is not there is left out"},
	}
)
