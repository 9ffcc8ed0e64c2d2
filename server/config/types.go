package config

// Type is the type of a key's value, numbered as DescribeConfigs reports it.
type Type int8

// The types of Kafka's ConfigDef.
const (
	TypeBoolean  Type = 1
	TypeString   Type = 2
	TypeInt      Type = 3
	TypeShort    Type = 4
	TypeLong     Type = 5
	TypeDouble   Type = 6
	TypeList     Type = 7
	TypeClass    Type = 8
	TypePassword Type = 9
)

// String is Kafka's name of the type.
func (t Type) String() string {
	switch t {
	case TypeBoolean:
		return "BOOLEAN"
	case TypeString:
		return "STRING"
	case TypeInt:
		return "INT"
	case TypeShort:
		return "SHORT"
	case TypeLong:
		return "LONG"
	case TypeDouble:
		return "DOUBLE"
	case TypeList:
		return "LIST"
	case TypeClass:
		return "CLASS"
	case TypePassword:
		return "PASSWORD"
	}
	return "UNKNOWN"
}

// words says in a refusal what kind of value a key takes.
func (t Type) words() string {
	switch t {
	case TypeBoolean:
		return "true or false"
	case TypeInt:
		return "a whole number up to 2147483647"
	case TypeShort:
		return "a whole number up to 32767"
	case TypeLong:
		return "a whole number"
	case TypeDouble:
		return "a number"
	case TypeList:
		return "a list, separated by commas"
	}
	return "text"
}

// Importance is how much most users should care about a key.
type Importance int8

// Kafka's three degrees.
const (
	High Importance = iota
	Medium
	Low
)

// String is the degree in lower case, as Kafka's documentation has it.
func (i Importance) String() string { return [...]string{"high", "medium", "low"}[i] }

// Scope is whether a broker's key can change while it runs (KIP-226).
type Scope int8

const (
	// ReadOnly keys need a restart.
	ReadOnly Scope = iota
	// PerBroker keys can be set for one broker.
	PerBroker
	// ClusterWide keys can be set for one broker or for all.
	ClusterWide
)

// String is Kafka's name of the scope.
func (s Scope) String() string { return [...]string{"read-only", "per-broker", "cluster-wide"}[s] }

// Source is where a value comes from, numbered as DescribeConfigs reports it.
type Source int8

// The sources of DescribeConfigs.
const (
	SourceTopic         Source = 1
	SourceBroker        Source = 2
	SourceDefaultBroker Source = 3
	SourceStatic        Source = 4
	SourceDefault       Source = 5
	SourceBrokerLogger  Source = 6
	SourceClientMetrics Source = 7
	SourceGroup         Source = 8
)

const (
	// maxListLen bounds the elements of one LIST value: a value of Kafka's 32,767
	// bytes cannot have more.
	maxListLen = 1 << 15
	maxTextLen = 1 << 20
)
