package api

// Kafka's numbers of the ACL operations.
const (
	opRead            = 3
	opWrite           = 4
	opCreate          = 5
	opDelete          = 6
	opAlter           = 7
	opDescribe        = 8
	opClusterAction   = 9
	opDescribeConfigs = 10
	opAlterConfigs    = 11
	opIdempotentWrite = 12
)

// The operations that make sense on a kind of resource, as the bit sets of
// KIP-430. Without an authorizer a client may do all of them.
const (
	authorizedTopic = 1<<opRead | 1<<opWrite | 1<<opCreate | 1<<opDelete | 1<<opAlter | 1<<opDescribe |
		1<<opDescribeConfigs | 1<<opAlterConfigs
	authorizedCluster = 1<<opCreate | 1<<opAlter | 1<<opDescribe | 1<<opClusterAction | 1<<opDescribeConfigs |
		1<<opAlterConfigs | 1<<opIdempotentWrite
	authorizedGroup = 1<<opRead | 1<<opDelete | 1<<opDescribe | 1<<opDescribeConfigs | 1<<opAlterConfigs
)
