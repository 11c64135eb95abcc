#!/bin/sh
# Makes the namespace at TEMPORAL_ADDRESS with 30 days of retention, and registers countersign's search
# attributes. What is there already stays as it is, another retention too. Ends when Temporal knows all of it:
# each of its services reads namespaces anew only every few seconds.
set -eu

namespace=${TEMPORAL_NAMESPACE:-default}
attempts=60
pause=2

# Runs a command until it succeeds, and shows only its last words.
until_it_works() {
  attempt=1
  until last_words=$("$@" 2>&1); do
    if [ "$attempt" -ge "$attempts" ]; then
      echo "gave up after $attempt tries: $*" >&2
      echo "$last_words" >&2
      exit 1
    fi
    attempt=$((attempt + 1))
    sleep "$pause"
  done
}

temporal_at_namespace() {
  temporal "$@" --namespace "$namespace" --command-timeout 5s
}

make_namespace() {
  temporal_at_namespace operator namespace describe ||
    temporal_at_namespace operator namespace create --retention 720h
}

# Succeeds only if all of them are known: a query that names an unknown attribute is refused.
knows_attributes() {
  temporal_at_namespace workflow count --query "CountersignStatus = 'x' AND CountersignSpec = 'x'
    AND CountersignTools = 'x' AND CountersignRoles = 'x' AND CountersignExpiresAt > '2000-01-01T00:00:00Z'"
}

register() {
  until_it_works temporal_at_namespace operator search-attribute create --name "$1" --type "$2"
}

until_it_works temporal operator cluster health --command-timeout 5s
until_it_works make_namespace
register CountersignStatus Keyword
register CountersignSpec Keyword
register CountersignTools KeywordList
register CountersignRoles KeywordList
register CountersignExpiresAt Datetime
until_it_works knows_attributes
echo "namespace $namespace is ready"
