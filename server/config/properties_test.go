package config

import (
	"strings"
	"testing"
)

// What java.util.Properties makes of each text.
func TestParseProperties(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"three separators", "a=1\nb:2\nc 3\n", `a=1@1 b=2@2 c=3@3`},
		{"white space around", "  a \t = \f 1 \n", `a="1 "@1`},
		{"value keeps separators", "a==1:2=3", `a="=1:2=3"@1`},
		{"no value", "a\nb=\nc:\n", `a=@1 b=@2 c=@3`},
		{"no key", "=1", `=1@1`},
		{"comments", "# a=1\n  ! b=2\n\n \t\nc=3 # stays", `c="3 # stays"@5`},
		{"escaped separators", `a\=b\:c\ d=1`, `"a=b:c d"=1@1`},
		{"escapes", `a=\t\n\r\f\\\q\u00e9\u20AC`, "a=\"\t\n\r\f\\qé€\"@1"},
		{"surrogate pair", `a=\ud83d\ude00`, `a="😀"@1`},
		{"half a pair", `a=\ud83dx`, "a=\"\ufffdx\"@1"},
		{"continued", "a=1,\\\n   2,\\\n\t3\nb=4", `a="1,2,3"@1 b=4@4`},
		{"continued over a comment sign", "a=1\\\n#2", `a="1#2"@1`},
		{"two backslashes end no line", "a=1\\\\\nb=2", `a="1\"@1 b=2@2`},
		{"three do", "a=1\\\\\\\nb=2", `a="1\b=2"@1`},
		{"a comment is not continued", "# x\\\na=1", `a=1@2`},
		{"continued at the end", "a=1\\", `a=1@1`},
		{"carriage returns", "a=1\r\nb=2\rc=3", `a=1@1 b=2@2 c=3@3`},
		{"byte order mark", "\ufeffa=1", `a=1@1`},
		{"twice", "a=1\na=2", `a=1@1 a=2@2`},
	} {
		list, err := ParseProperties([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := showProperties(list); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func showProperties(list []Property) string {
	quote := func(s string) string {
		if strings.ContainsAny(s, " \t\n\r\f=:#,\\é€😀\ufffd") {
			return `"` + s + `"`
		}
		return s
	}
	var parts []string
	for _, p := range list {
		number, _ := Format(int32(p.Line))
		parts = append(parts, quote(p.Key)+"="+quote(p.Value)+"@"+number)
	}
	return strings.Join(parts, " ")
}

func TestParsePropertiesRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a=1\nb=\\u12":             `line 2: "\u12" is cut short: four hexadecimal digits follow \u`,
		"a=\\uzzzz":                `line 1: "\uzzzz" is not a character: four hexadecimal digits follow \u`,
		"a=1\nb=\xff":              "line 2 is not UTF-8 text",
		strings.Repeat("x", 1<<21): "2097152 bytes are too many for a properties file; at most 1048576 are read",
	} {
		if _, err := ParseProperties([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.20q: got %v, want %s", text, err, want)
		}
	}
}

// FuzzParseProperties looks for panics, and for pairs that don't survive being
// written and read again.
func FuzzParseProperties(f *testing.F) {
	f.Add([]byte("listeners=PLAINTEXT://:9092,\\\n  HOST://:9093\n# x\nb : \\u00e9\\\\ \n"))
	f.Add([]byte("a\\"))
	f.Add([]byte("a=\\ud83d\\ude00"))
	escape := strings.NewReplacer(`\`, `\\`, " ", `\ `, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\f", `\f`, "=", `\=`, ":", `\:`, "#", `\#`, "!", `\!`)
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseProperties(text)
		if err != nil {
			return
		}
		var b strings.Builder
		for _, p := range list {
			b.WriteString(escape.Replace(p.Key) + "=" + escape.Replace(p.Value) + "\n")
		}
		again, err := ParseProperties([]byte(b.String()))
		if err != nil || len(again) != len(list) {
			t.Fatalf("%d pairs became %d (%v) in %q", len(list), len(again), err, b.String())
		}
		for i := range list {
			if list[i].Key != again[i].Key || list[i].Value != again[i].Value {
				t.Fatalf("%q=%q became %q=%q", list[i].Key, list[i].Value, again[i].Key, again[i].Value)
			}
		}
	})
}
