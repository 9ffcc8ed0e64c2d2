package config

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Property is one pair of a properties file and the line it begins on.
type Property struct {
	Key, Value string
	Line       int
}

// maxPropertiesBytes bounds a properties file.
const maxPropertiesBytes = 1 << 20

// ParseProperties reads the syntax of java.util.Properties: comments with # or !,
// keys ended by =, : or white space, lines continued with a backslash, and the
// escapes \t \n \r \f \uXXXX. The text is UTF-8; a key that stands twice is
// listed twice.
func ParseProperties(text []byte) ([]Property, error) {
	if len(text) > maxPropertiesBytes {
		return nil, fmt.Errorf("%d bytes are too many for a properties file; at most %d are read", len(text), maxPropertiesBytes)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("line %d is not UTF-8 text", badLine(text))
	}
	r := &lineReader{rest: strings.TrimPrefix(string(text), "\ufeff")}
	var list []Property
	for {
		line, number, ok := r.logical()
		if !ok {
			return list, nil
		}
		rawKey, rawValue := splitPair(line)
		key, err := unescape(rawKey)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		value, err := unescape(rawValue)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		list = append(list, Property{Key: key, Value: value, Line: number})
	}
}

// badLine is the number of the first line that is not UTF-8.
func badLine(text []byte) int {
	for i, line := range strings.Split(string(text), "\n") {
		if !utf8.ValidString(line) {
			return i + 1
		}
	}
	return 0
}

// lineReader yields logical lines: natural ones joined where a backslash asks
// for it, without blank lines and comments.
type lineReader struct {
	rest string
	line int
}

// natural is the next line of the file without its end.
func (r *lineReader) natural() (string, bool) {
	if r.rest == "" {
		return "", false
	}
	r.line++
	end := strings.IndexAny(r.rest, "\r\n")
	if end < 0 {
		line := r.rest
		r.rest = ""
		return line, true
	}
	line := r.rest[:end]
	if strings.HasPrefix(r.rest[end:], "\r\n") {
		end++
	}
	r.rest = r.rest[end+1:]
	return line, true
}

func (r *lineReader) logical() (line string, number int, ok bool) {
	for {
		natural, ok := r.natural()
		if !ok {
			return "", 0, false
		}
		natural = strings.TrimLeft(natural, " \t\f")
		if natural == "" || natural[0] == '#' || natural[0] == '!' {
			continue
		}
		number = r.line
		var b strings.Builder
		for continued(natural) {
			b.WriteString(natural[:len(natural)-1])
			if natural, ok = r.natural(); !ok {
				break
			}
			natural = strings.TrimLeft(natural, " \t\f")
		}
		b.WriteString(natural)
		return b.String(), number, true
	}
}

// continued says that the line ends in an odd number of backslashes.
func continued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// splitPair cuts a logical line into key and value, both still escaped.
func splitPair(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
			continue
		}
		if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	key, value = line[:end], strings.TrimLeft(line[end:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	return key, value
}

// unescape replaces the escapes of a key or a value.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	var units []uint16 // of \u escapes in a row, which may be surrogate pairs
	for i := 0; i < len(s); {
		if strings.HasPrefix(s[i:], `\u`) {
			unit, err := unicodeEscape(s[i+2:])
			if err != nil {
				return "", err
			}
			units = append(units, unit)
			i += 6
			continue
		}
		b.WriteString(string(utf16.Decode(units)))
		units = units[:0]
		if s[i] == '\\' && i+1 < len(s) {
			i++
			b.WriteByte(escaped(s[i]))
		} else if s[i] != '\\' {
			b.WriteByte(s[i])
		}
		i++
	}
	b.WriteString(string(utf16.Decode(units)))
	return b.String(), nil
}

func escaped(c byte) byte {
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 'f':
		return '\f'
	}
	return c
}

func unicodeEscape(s string) (uint16, error) {
	var unit uint16
	for i := range 4 {
		if i >= len(s) {
			return 0, fmt.Errorf(`"\u%s" is cut short: four hexadecimal digits follow \u`, s)
		}
		digit := strings.IndexByte("0123456789abcdef", s[i]|0x20)
		if digit < 0 || (s[i] < '0') {
			return 0, fmt.Errorf(`"\u%s" is not a character: four hexadecimal digits follow \u`, s[:min(4, len(s))])
		}
		unit = unit<<4 | uint16(digit)
	}
	return unit, nil
}
