// Verifies a credential with @sd-jwt/core: {"credential", "jwks"} on standard input, the claims out.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { SDJwtInstance } from '@sd-jwt/core';

const { credential, jwks } = JSON.parse(readFileSync(0, 'utf8'));
const header = JSON.parse(Buffer.from(credential.split('.')[0], 'base64url').toString());
const jwk = jwks.keys.find((each) => each.kid === header.kid);
const key = createPublicKey({ key: jwk, format: 'jwk' });

const library = new SDJwtInstance({
  hashAlg: 'sha-256',
  hasher: (text, algorithm) => createHash(algorithm.replace('-', '')).update(text).digest(),
  verifier: (signed, signature) =>
    verify('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url')),
});

const { payload } = await library.verify(credential);
console.log(JSON.stringify({ header, payload }));
