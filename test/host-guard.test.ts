// P10 and the fence around the http tool: what a person reads as the host is what is called, and no spelling of
// an address reaches a private, local or metadata service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addressKind, createAddressGuard, type AddressKind } from '../src/tools/address-guard.ts';
import { covers, hostAddress, isAllowed, parseHostRule, readUrl } from '../src/tools/host-guard.ts';

function problemOf(text: string): string {
  const read = readUrl(text);
  assert.ok('problem' in read, `${text} was read as ${'url' in read ? read.url.href : ''}`);
  return read.problem;
}

function allows(rules: string[], text: string): boolean {
  const read = readUrl(text);
  assert.ok('url' in read, 'problem' in read ? read.problem : '');
  return isAllowed(read.url, rules.map(parseHostRule));
}

test('a plain http or https URL is read as it is', () => {
  const urls: [string, string][] = [
    ['https://api.example.com', 'https://api.example.com/'],
    ['HTTPS://API.Example.com/V1?a=b', 'https://api.example.com/V1?a=b'],
    ['https://api.example.com:443/a', 'https://api.example.com/a'],
    ['http://127.0.0.1:8080/a', 'http://127.0.0.1:8080/a'],
    ['http://[::1]:8080/a', 'http://[::1]:8080/a'],
    ['https://xn--bcher-kva.example/', 'https://xn--bcher-kva.example/'],
    ['https://api.example.com/a/../b', 'https://api.example.com/b'],
  ];
  for (const [text, href] of urls) {
    const read = readUrl(text);
    assert.equal('url' in read ? read.url.href : read.problem, href);
  }
});

test('a host that means another than it says is refused, with what it means', () => {
  const spellings: [string, string][] = [
    ['http://2130706433/', '127.0.0.1'],
    ['http://0x7f000001/', '127.0.0.1'],
    ['http://0177.0.0.1/', '127.0.0.1'],
    ['http://127.1/', '127.0.0.1'],
    ['http://127.0.0.1./', '127.0.0.1'],
    ['http://0x7f.0x0.0x0.0x1:80/', '127.0.0.1'],
    ['http://2852039166/latest/meta-data/', '169.254.169.254'],
    ['http://127.0.0.%31/', '127.0.0.1'],
    ['http://１２７.0.0.1/', '127.0.0.1'],
    ['http://127。0。0。1/', '127.0.0.1'],
    ['http://[0:0:0:0:0:0:0:1]/', '[::1]'],
    ['http://[::ffff:127.0.0.1]/', '[::ffff:7f00:1]'],
    ['https://bücher.example/', 'xn--bcher-kva.example'],
    ['https://ex%61mple.com/', 'example.com'],
    ['https://\u0430pi.example.com/', 'xn--pi-6kc.example.com'], // a Cyrillic a
  ];
  for (const [text, means] of spellings)
    assert.match(problemOf(text), new RegExp(`means ${escaped(means)};`), text);
});

test('whatever else a URL parser would understand silently is refused', () => {
  const refused: [string, RegExp][] = [
    ['https://api.example.com./', /ends in a dot/],
    ['https://user@api.example.com/', /user or password/],
    ['https://user:password@api.example.com/', /user or password/],
    ['https://api.example.com@evil.example/', /user or password/],
    ['https://:@api.example.com/', /user or password/],
    ['https://api.example.com\\@evil.example/', /backslash/],
    ['https://api.example.com\t/', /control/],
    ['https://api.exam\nple.com/', /control/],
    [' https://api.example.com/', /space/],
    ['https://api.example.com/a b', /space/],
    ['https://api.example.com/#a', /fragment/],
    ['https://api.example.com/#', /fragment/],
    ['https:api.example.com/', /is not a URL that starts/],
    ['https:/api.example.com/', /is not a URL that starts/],
    ['https:///api.example.com/', /is not a URL that starts/],
    ['//api.example.com/', /is not a URL that starts/],
    ['/a', /is not a URL that starts/],
    ['', /is not a URL that starts/],
    ['file:///etc/passwd', /is not a URL that starts/],
    ['gopher://127.0.0.1/', /is not a URL that starts/],
    ['ftp://api.example.com/', /is not a URL that starts/],
    ['http://256.0.0.1/', /is not a URL that starts/],
    ['http://[::1/', /is not a URL that starts/],
    ['http://[fe80::1%25eth0]/', /is not a URL that starts/],
    ['http://a.example:99999/', /is not a URL that starts/],
    [`https://api.example.com/${'a'.repeat(8_000)}`, /over 8000 characters/],
  ];
  for (const [text, problem] of refused) assert.match(problemOf(text), problem, text);
});

test('a password in a URL is not repeated in the message about it', () => {
  assert.doesNotMatch(problemOf('https://user:s3cret@api.example.com/x?y'), /s3cret|user:/);
});

test('an allowed host is that host on its own port, and *. every name below it', () => {
  const yes: [string, string][] = [
    ['api.example.com', 'https://api.example.com/a'],
    ['api.example.com', 'http://API.example.com/a'],
    ['API.example.com', 'https://api.example.com:443/a'],
    ['api.example.com:443', 'https://api.example.com/a'],
    ['api.example.com:8443', 'https://api.example.com:8443/a'],
    ['*.example.com', 'https://a.example.com/'],
    ['*.example.com', 'https://a.b.example.com/'],
    ['*.example.com:8443', 'https://a.example.com:8443/'],
    ['127.0.0.1:8080', 'http://127.0.0.1:8080/'],
    ['[::1]:8080', 'http://[::1]:8080/'],
    ['localhost', 'http://localhost/'],
  ];
  const no: [string, string][] = [
    ['api.example.com', 'https://example.com/'],
    ['api.example.com', 'https://api.example.com.evil.example/'],
    ['api.example.com', 'https://xapi.example.com/'],
    ['api.example.com', 'https://api.example.com:8443/'],
    ['api.example.com:8443', 'https://api.example.com/'],
    ['api.example.com:443', 'http://api.example.com/'],
    ['*.example.com', 'https://example.com/'],
    ['*.example.com', 'https://evilexample.com/'],
    ['*.example.com', 'https://a.example.com:8443/'],
    ['127.0.0.1:8080', 'http://127.0.0.1/'],
  ];
  for (const [rule, url] of yes) assert.ok(allows([rule], url), `${rule} should allow ${url}`);
  for (const [rule, url] of no) assert.ok(!allows([rule], url), `${rule} should not allow ${url}`);
  assert.ok(allows(['a.example', 'b.example'], 'https://b.example/'));
});

test('an entry of an allow list that says something else than a host is refused', () => {
  const wrong = [
    '', '*', '*.', '*.com', '*.*.example.com', 'a*.example.com', '.example.com', 'https://a.example', 'a.example/',
    'a.example.', 'a.example:', 'a.example:0', 'a.example:65536', 'a.example:http', 'u@a.example', 'a b', '::1',
    '*.127.0.0.1', '*.[::1]', '127.1', '0x7f000001', 'bücher.example',
  ]; // prettier-ignore
  for (const text of wrong) assert.throws(() => parseHostRule(text), TypeError, text);
});

test('a rule covers what it allows, and no more', () => {
  const covered = (wide: string, narrow: string) => covers(parseHostRule(wide), parseHostRule(narrow));
  assert.ok(covered('a.example.com', 'a.example.com'));
  assert.ok(covered('*.example.com', '*.example.com'));
  assert.ok(covered('*.example.com', 'a.example.com'));
  assert.ok(covered('*.example.com', '*.a.example.com'));
  assert.ok(!covered('*.example.com', 'example.com'));
  assert.ok(!covered('*.example.com', 'a.example.com:8443'));
  assert.ok(!covered('a.example.com', '*.example.com'));
  assert.ok(!covered('a.example.com:8443', 'a.example.com'));
});

const kindsOf: Record<AddressKind, string[]> = {
  public: [
    '1.1.1.1', '8.8.8.8', '11.0.0.0', '9.255.255.255', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0',
    '172.15.255.255', '172.32.0.0', '192.167.255.255', '192.169.0.0', '223.255.255.255', '2606:4700::1111', '2001:4860::8888',
    '::ffff:8.8.8.8', '64:ff9b::8.8.8.8',
  ],
  loopback: ['127.0.0.1', '127.255.255.255', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1', '64:ff9b::7f00:1'],
  private: ['10.0.0.0', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fc00::1', 'fdff::1', '::ffff:10.0.0.1'],
  shared: ['100.64.0.0', '100.127.255.255', '::ffff:100.64.0.1'],
  'link-local': ['169.254.0.1', '169.254.255.255', 'fe80::1', 'febf::1', '::ffff:169.254.1.1'],
  metadata: [
    '169.254.169.254', '169.254.170.2', '100.100.100.200', '192.0.0.192', '168.63.129.16', 'fd00:ec2::254', 'fd20:ce::254',
    '::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '64:ff9b::a9fe:a9fe',
  ],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', '::ffff:224.0.0.1'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0'],
  reserved: [
    '192.0.0.1', '192.0.2.1', '192.88.99.1', '198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1', '240.0.0.1', '255.255.255.255',
    '2001::1', '2001:db8::1', '2002:7f00:1::', '3fff::1', 'fec0::1', '4000::1', '100::1', '64:ff9b:1::1', '::7f00:1', '::2',
    'fe80::1%eth0', 'localhost', '', '127.1', '0x7f000001', '127.0.0.1.', '[::1]',
  ],
}; // prettier-ignore

test('every kind of address is told, however it is written', () => {
  for (const [kind, addresses] of Object.entries(kindsOf)) {
    for (const address of addresses) assert.equal(addressKind(address), kind, address);
  }
});

test('an IPv4 address in IPv6 is that address, and no number of it passes as a host', () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.constantFrom('::ffff:', '64:ff9b::'), (address, prefix) => {
      assert.equal(addressKind(prefix + address), addressKind(address));
      const bytes = address.split('.').map(Number);
      const number = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
      const octal = bytes.map((byte) => `0${byte.toString(8)}`).join('.');
      const hex = bytes.map((byte) => `0x${byte.toString(16)}`).join('.');
      for (const host of [String(number), `0x${number.toString(16)}`, octal, hex, `${address}.`]) {
        assert.match(problemOf(`http://${host}/`), /means/, host);
      }
    }),
  );
});

test('without a word only public addresses are let through', () => {
  const guard = createAddressGuard(false);
  for (const address of kindsOf.public) assert.equal(guard(address), undefined, address);
  for (const [kind, addresses] of Object.entries(kindsOf)) {
    if (kind === 'public') continue;
    for (const address of addresses)
      assert.match(guard(address) ?? '', new RegExp(`is a ${kind} address`), address);
  }
});

test('allowPrivate opens loopback, private and shared addresses, and never the rest', () => {
  const guard = createAddressGuard(true);
  const open = [...kindsOf.public, ...kindsOf.loopback, ...kindsOf.private, ...kindsOf.shared];
  for (const address of open) assert.equal(guard(address), undefined, address);
  for (const kind of ['link-local', 'metadata', 'multicast', 'unspecified', 'reserved'] as const) {
    for (const address of kindsOf[kind]) assert.match(guard(address) ?? '', /never allowed/, address);
  }
});

test('a list opens exactly what it holds', () => {
  const guard = createAddressGuard(['127.0.0.1', '10.1.0.0/16', '100.64.0.0/10', 'fd12::/16']);
  const open = ['127.0.0.1', '::ffff:127.0.0.1', '10.1.255.255', '100.64.0.1', 'fd12::1', '1.1.1.1'];
  for (const address of open) assert.equal(guard(address), undefined, address);
  for (const address of ['127.0.0.2', '::1', '10.2.0.0', '192.168.0.1', 'fd13::1']) {
    assert.match(guard(address) ?? '', /allowPrivate does not hold it/, address);
  }
  // a metadata service inside of an opened range stays closed
  assert.match(guard('100.100.100.200') ?? '', /metadata address, which is never allowed/);
});

test('what allowPrivate can never open is refused when the tool is made', () => {
  for (const text of ['169.254.169.254', '169.254.0.0/16', 'fe80::1', '0.0.0.0/0', '224.0.0.1', '::/0']) {
    assert.throws(() => createAddressGuard([text]), /can be allowed/, text);
  }
  assert.throws(() => createAddressGuard(['8.8.8.8']), /needs no permission/);
  for (const text of ['localhost', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '127.1', '', '::1/129']) {
    assert.throws(() => createAddressGuard([text]), /holds addresses and ranges/, text);
  }
});

test('the address of an IPv6 host comes without its brackets', () => {
  assert.equal(hostAddress(new URL('http://[::1]:80/')), '::1');
  assert.equal(hostAddress(new URL('http://api.example.com/')), 'api.example.com');
});

function escaped(text: string): string {
  return text.replace(/[.[\]]/g, '\\$&');
}
