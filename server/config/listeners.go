package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Listener is one address to listen on, and what its clients are told.
type Listener struct {
	Name string
	// Host is "" for every interface.
	Host string
	// Port 0 lets the system choose.
	Port     int32
	Protocol string
	// AdvertisedHost is "" when each client is told the address that it
	// connected to.
	AdvertisedHost string
	AdvertisedPort int32
}

// Address is what to listen on, as host:port.
func (l Listener) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))) }

// endpoint is one element of listeners or advertised.listeners.
type endpoint struct {
	name, host string
	port       int32
}

// parseEndpoint reads NAME://host:port.
func parseEndpoint(text string) (endpoint, error) {
	name, address, ok := strings.Cut(strings.TrimSpace(text), "://")
	if !ok || name == "" {
		return endpoint{}, fmt.Errorf("%q is not NAME://host:port", text)
	}
	at := strings.LastIndexByte(address, ':')
	if at < 0 {
		return endpoint{}, fmt.Errorf("%q has no port; want NAME://host:port", text)
	}
	port, err := strconv.Atoi(address[at+1:])
	if err != nil || port < 0 || port > 65535 {
		return endpoint{}, fmt.Errorf("%q in %q is not a port; want a number from 0 to 65535", address[at+1:], text)
	}
	host := address[:at]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if strings.ContainsAny(host, "/[]@ ") {
		return endpoint{}, fmt.Errorf("%q in %q is not a host", host, text)
	}
	return endpoint{name: strings.ToUpper(name), host: host, port: int32(port)}, nil
}

// fullEndpoints completes what people type: 9092 and host:9092 are listeners
// called PLAINTEXT; an advertised host or host:port belongs to the first
// listener.
func (l *loader) fullEndpoints(value string, listen bool) string {
	parts := strings.Split(value, ",")
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" || strings.Contains(part, "://") {
			continue
		}
		switch {
		case listen && digits(part):
			part = "PLAINTEXT://:" + part
		case listen:
			part = "PLAINTEXT://" + part
		default:
			part = l.advertised(part)
		}
		parts[i] = part
	}
	return strings.Join(parts, ",")
}

// advertised completes an advertised address with the first listener's name and
// port. Listeners is parsed later: its name sorts after this one's.
func (l *loader) advertised(address string) string {
	first := endpoint{name: "PLAINTEXT", port: 9092}
	if set, ok := l.static.set[Listeners.Name]; ok {
		full, _, _ := strings.Cut(l.fullEndpoints(set.Value, true), ",")
		if e, err := parseEndpoint(full); err == nil {
			first = e
		}
	}
	bare := strings.Count(address, ":") > 1 && !strings.Contains(address, "]") // an IPv6 address
	if bare {
		address = "[" + address + "]"
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address += ":" + strconv.Itoa(int(first.port))
	}
	return first.name + "://" + address
}

// parseProtocolMap reads listener.security.protocol.map.
func parseProtocolMap(text string) (map[string]string, error) {
	protocols := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, protocol, ok := strings.Cut(pair, ":")
		name, protocol = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(protocol))
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("%q is not NAME:PROTOCOL", pair)
		case protocols[name] != "":
			return nil, fmt.Errorf("%s stands twice", name)
		}
		switch protocol {
		case "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL":
			protocols[name] = protocol
		default:
			return nil, fmt.Errorf("%q in %q is not a protocol; want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", protocol, pair)
		}
	}
	return protocols, nil
}

// parsePerIP reads max.connections.per.ip.overrides.
func parsePerIP(text string) (map[string]int, error) {
	limits := map[string]int{}
	for _, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		at := strings.LastIndexByte(pair, ':')
		if at < 1 {
			return nil, fmt.Errorf("%q is not address:number", pair)
		}
		address, number := strings.Trim(strings.TrimSpace(pair[:at]), "[]"), strings.TrimSpace(pair[at+1:])
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q in %q is not a number of connections", number, pair)
		}
		if ip := net.ParseIP(address); ip != nil {
			address = ip.String()
		}
		limits[address] = n
	}
	return limits, nil
}
