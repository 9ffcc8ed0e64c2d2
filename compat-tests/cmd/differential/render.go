package main

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// render is a response as lines of path and value, in an order that depends on nothing but their content. Ids, times
// and addresses are masked: they cannot be the same on two brokers. The text of an error is for people and left out.
func (s *side) render(c *Case, resp kmsg.Response, err error) []string {
	if err != nil {
		return []string{"error = " + err.Error()}
	}
	r := renderer{side: s, c: c}
	r.value("", "", reflect.ValueOf(resp).Elem())
	return r.lines
}

type renderer struct {
	side  *side
	c     *Case
	lines []string
}

// always are masked in every response: texts for people, and what belongs to one broker or one moment.
var always = []string{
	"ThrottleMillis", "Host", "Port", "ClusterID", "Rack", "MemberID", "LeaderID", "ProducerID",
	"DirectoryID", "VoterDirectoryID", "ReplicaDirectoryID", "ClientInstanceID", "SubscriptionID", "BrokerEpoch",
}

// times are masked unless they are one of Kafka's special values.
var times = regexp.MustCompile(`(Timestamp|LogAppendTime|StartTimestamp|ExpirationTimestamp|LastTimestamp)$`)

func (r *renderer) value(path, bare string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			r.line(path, bare, "null")
			return
		}
		r.value(path, bare, v.Elem())
	case reflect.Struct:
		r.fields(path, bare, v)
	case reflect.Slice:
		r.slice(path, bare, v)
	case reflect.Array:
		r.line(path, bare, r.id(v))
	default:
		r.line(path, bare, fmt.Sprintf("%#v", v.Interface()))
	}
}

func (r *renderer) fields(path, bare string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Name == "Version" || f.Name == "UnknownTags" || f.Name == "ErrorMessage" || !f.IsExported() {
			continue
		}
		r.value(join(path, f.Name), join(bare, f.Name), v.Field(i))
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (r *renderer) slice(path, bare string, v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		switch {
		case v.IsNil():
			r.line(path, bare, "null")
		case strings.HasSuffix(bare, "RecordBatches"):
			r.lines = append(r.lines, renderBatches(path, v.Bytes())...)
		default:
			r.line(path, bare, fmt.Sprintf("%q", v.Bytes()))
		}
		return
	}
	if v.IsNil() {
		r.line(path, bare, "null array")
		return
	}
	if slices.Contains(r.c.Mask, bare) {
		return
	}
	r.lines = append(r.lines, fmt.Sprintf("len(%s) = %d", path, v.Len()))
	unordered := slices.Contains(r.c.Unordered, bare)
	elements := make([][]string, v.Len())
	for i := range v.Len() {
		e := renderer{side: r.side, c: r.c}
		e.value("[]", bare, v.Index(i))
		elements[i] = e.lines
	}
	if unordered {
		sort.SliceStable(elements, func(i, j int) bool { return slices.Compare(elements[i], elements[j]) < 0 })
	}
	for i, lines := range elements {
		index := strconv.Itoa(i)
		if name, ok := strings.CutPrefix(lines[0], "[].Name = "); ok && unordered {
			index = name
		}
		for _, line := range lines {
			r.lines = append(r.lines, strings.Replace(line, "[]", path+"["+index+"]", 1))
		}
	}
}

func (r *renderer) line(path, bare, value string) {
	name := bare[strings.LastIndexByte(bare, '.')+1:]
	if slices.Contains(r.c.Mask, bare) || slices.Contains(r.c.Mask, name) {
		return
	}
	if slices.Contains(always, name) {
		value = kindOf(value)
	}
	if times.MatchString(name) && !strings.HasPrefix(value, "-") && value != "0" {
		value = "a time"
	}
	r.lines = append(r.lines, path+" = "+value)
}

// kindOf tells of a masked value only whether there is one.
func kindOf(value string) string {
	switch value {
	case "null", `""`, "-1", "0":
		return value
	}
	return "something"
}

// id names a topic by the id that its side gave it.
func (r *renderer) id(v reflect.Value) string {
	id, ok := v.Interface().([16]byte)
	switch {
	case !ok:
		return fmt.Sprint(v.Interface())
	case id == [16]byte{}:
		return "no id"
	case r.side.topicIDs[id] != "":
		return "id of " + r.side.topicIDs[id]
	}
	return "an id"
}

// errorCodes are all error codes of a response that are not zero.
func errorCodes(v reflect.Value) []int16 {
	var codes []int16
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			codes = errorCodes(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			if f.Name == "ErrorCode" && v.Field(i).Int() != 0 {
				codes = append(codes, int16(v.Field(i).Int()))
			}
			codes = append(codes, errorCodes(v.Field(i))...)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				codes = append(codes, errorCodes(v.Index(i))...)
			}
		}
	}
	return codes
}
