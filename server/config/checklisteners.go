package config

import (
	"net"
	"slices"
	"strings"
)

// checkListeners reads listeners, advertised.listeners and the protocol map
// together and answers with the listeners to open.
func (l *loader) checkListeners(s *Snapshot) []Listener {
	protocols, err := parseProtocolMap(ListenerSecurityProtocolMap.Get(s))
	if err != nil {
		l.refuseKey(ListenerSecurityProtocolMap.Name, "%v", err)
		return nil
	}
	controllers := make([]string, 0, 1)
	for _, name := range ControllerListenerNames.Get(s) {
		controllers = append(controllers, strings.ToUpper(name))
	}
	list := l.openListeners(s, controllers, protocols)
	if len(list) == 0 {
		return nil
	}
	l.advertiseListeners(s, controllers, list)
	l.checkInterBroker(s, list)
	return list
}

func (l *loader) openListeners(s *Snapshot, controllers []string, protocols map[string]string) []Listener {
	var list []Listener
	texts := Listeners.Get(s)
	for _, text := range texts {
		e, err := parseEndpoint(text)
		if err != nil {
			l.refuseKey(Listeners.Name, "%v", err)
			return nil
		}
		if slices.Contains(controllers, e.name) {
			continue
		}
		protocol, ok := l.protocolOf(e.name, protocols)
		switch {
		case !ok:
			l.refuseKey(Listeners.Name, "listener.security.protocol.map has no protocol for %s", e.name)
			continue
		case protocol != "PLAINTEXT":
			uses := e.name
			if protocol != e.name {
				uses = e.name + " uses " + protocol + ", which"
			}
			l.refuseKey(Listeners.Name, "%s can't be served yet; want PLAINTEXT listeners only", uses)
			continue
		case slices.ContainsFunc(list, func(o Listener) bool { return o.Name == e.name }):
			l.refuseKey(Listeners.Name, "%s stands twice; each listener needs a name of its own", e.name)
			continue
		case slices.ContainsFunc(list, func(o Listener) bool { return samePort(o, e) }):
			l.refuseKey(Listeners.Name, "port %d stands twice; each listener needs a port of its own", e.port)
			continue
		}
		list = append(list, Listener{Name: e.name, Host: e.host, Port: e.port, Protocol: protocol})
	}
	if len(list) == 0 && len(l.problems) == 0 {
		l.refuseKey(Listeners.Name, "there is no listener for clients; want one such as PLAINTEXT://:9092")
	}
	return list
}

// protocolOf is a listener's protocol. Without a map of their own people name
// listeners as they like: those are PLAINTEXT unless the name says otherwise.
func (l *loader) protocolOf(name string, protocols map[string]string) (string, bool) {
	if p, ok := protocols[name]; ok {
		return p, true
	}
	_, given := l.static.set[ListenerSecurityProtocolMap.Name]
	secure := strings.Contains(name, "SSL") || strings.Contains(name, "SASL") || strings.Contains(name, "TLS")
	if given || secure {
		return "", false
	}
	return "PLAINTEXT", true
}

// samePort says that two listeners can't both be opened; the same port on an
// IPv4 and an IPv6 address can.
func samePort(o Listener, e endpoint) bool {
	if e.port == 0 || o.Port != e.port {
		return false
	}
	a, b := net.ParseIP(o.Host), net.ParseIP(e.host)
	return a == nil || b == nil || a.Equal(b) || a.IsUnspecified() || b.IsUnspecified()
}

func (l *loader) advertiseListeners(s *Snapshot, controllers []string, list []Listener) {
	for _, text := range AdvertisedListeners.Get(s) {
		e, err := parseEndpoint(text)
		if err != nil {
			l.refuseKey(AdvertisedListeners.Name, "%v", err)
			return
		}
		at := slices.IndexFunc(list, func(o Listener) bool { return o.Name == e.name })
		ip := net.ParseIP(e.host)
		switch {
		case slices.Contains(controllers, e.name):
		case at < 0:
			l.refuseKey(AdvertisedListeners.Name, "listeners has no %s; it has %s", e.name, names(list))
		case list[at].AdvertisedHost != "":
			l.refuseKey(AdvertisedListeners.Name, "%s stands twice", e.name)
		case e.host == "" || ip != nil && ip.IsUnspecified():
			l.refuseKey(AdvertisedListeners.Name, "%s://%s:%d can't be reached by anyone; want an address that clients can connect to, or leave it out: then each client is told the address it connected to", e.name, e.host, e.port)
		case e.port == 0:
			l.refuseKey(AdvertisedListeners.Name, "port 0 of %s can't be reached by anyone; want a number from 1 to 65535", e.name)
		default:
			list[at].AdvertisedHost, list[at].AdvertisedPort = e.host, e.port
		}
	}
}

func names(list []Listener) string {
	all := make([]string, len(list))
	for i, l := range list {
		all[i] = l.Name
	}
	return strings.Join(all, ", ")
}

func (l *loader) checkInterBroker(s *Snapshot, list []Listener) {
	name, named := InterBrokerListenerName.Lookup(s)
	if named && !slices.ContainsFunc(list, func(o Listener) bool { return strings.EqualFold(o.Name, name) }) {
		l.refuseKey(InterBrokerListenerName.Name, "listeners has no %s; it has %s", name, names(list))
	}
	if _, given := l.static.set[SecurityInterBrokerProtocol.Name]; !given {
		return
	}
	if protocol := SecurityInterBrokerProtocol.Get(s); protocol != "PLAINTEXT" {
		l.refuseKey(SecurityInterBrokerProtocol.Name, "%s can't be served yet; want PLAINTEXT", protocol)
	} else if named {
		l.refuseKey(SecurityInterBrokerProtocol.Name, "inter.broker.listener.name is set too; want one of the two")
	}
}
