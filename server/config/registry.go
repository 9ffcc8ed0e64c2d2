package config

// The tables of keys without an effect join the registries.
var _ = registerAccepted()

func registerAccepted() bool {
	for _, list := range [][]*Decl{acceptedBroker, acceptedGroups, acceptedSecurity} {
		for _, d := range list {
			d.Topic = topicOverAccepted[d.Name]
			brokerKeys.add(d)
			if d.Topic != "" {
				d.forTopic(nil)
			}
		}
	}
	for _, d := range acceptedTopic {
		topicKeys.add(d)
	}
	for _, d := range acceptedGroup {
		groupKeys.add(d)
	}
	for _, d := range acceptedMetrics {
		metricsKeys.add(d)
	}
	return true
}

// Broker is the declaration of a broker's key, nil when there is none.
func Broker(name string) *Decl { return brokerKeys.byName[name] }

// Topic is the declaration of a topic's key, nil when there is none.
func Topic(name string) *Decl { return topicKeys.byName[name] }

// BrokerNames are the names of all of a broker's keys.
func BrokerNames() []string { return brokerKeys.names() }

// TopicNames are the names of all of a topic's keys.
func TopicNames() []string { return topicKeys.names() }
