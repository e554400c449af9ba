#!/usr/bin/env python3
"""read.py text|openmetrics FILE: reads it as Prometheus' own client does, and prints
each sample: FAMILY TYPE UNIT NAME {LABEL=VALUE,...} NUMBER, labels in their order,
as JSON strings."""
import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics


def families(how, text):
    if how == 'openmetrics':
        return openmetrics.text_string_to_metric_families(text)
    return parser.text_string_to_metric_families(text)


def main(how, path):
    with open(path, encoding='utf-8', newline='') as file:
        text = file.read()
    for family in families(how, text):
        for sample in family.samples:
            labels = ','.join(f'{k}={json.dumps(v)}'
                              for k, v in sorted(sample.labels.items()))
            print(family.name, family.type, family.unit or '-', sample.name,
                  '{' + labels + '}', float(sample.value))


if __name__ == '__main__':
    main(*sys.argv[1:])
