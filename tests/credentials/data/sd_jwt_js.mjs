// Writes sd_jwt_js.json: credentials issued by @sd-jwt/core, for test_other_issuers.py.
//
//   npm install @sd-jwt/core@0.19.0   (anywhere; Node 20 or later)
//   node sd_jwt_js.mjs > sd_jwt_js.json
//
// Keys and salts are random, so each run writes other credentials; all of them have to verify.

import { createHash, randomBytes, webcrypto } from "node:crypto";
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { SDJwtInstance } = require("@sd-jwt/core");

const ES256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const { privateKey, publicKey } = await webcrypto.subtle.generateKey(ES256, true, ["sign", "verify"]);
const { kty, crv, x, y } = await webcrypto.subtle.exportKey("jwk", publicKey);

const instance = new SDJwtInstance({
  signAlg: "ES256",
  signer: async (text) =>
    Buffer.from(await webcrypto.subtle.sign(ES256, privateKey, Buffer.from(text))).toString("base64url"),
  hashAlg: "sha-256",
  hasher: (text, algorithm) => createHash(algorithm.replace("-", "")).update(text).digest(),
  saltGenerator: (length) => randomBytes(length).toString("base64url"),
});

const signed = {
  iss: "https://api.identity.example",
  aud: "client-1",
  sub: "6f2c1a9e-0b7d-4c55-9a3e-d1f0c2b4a687",
  environment: "test",
  iat: 1795176000,
  exp: 1795262400,
};
const kyc = { verified: true, provider: "vendor", issued_at: "2026-11-20T11:00:00Z", expires_at: null };
const cases = [
  { claims: { age_over_18: true }, decoys: 0 },
  { claims: { kyc_verified: kyc, age_over_18: true, country_resident: "NG", unique_human: true }, decoys: 0 },
  { claims: { kyc_verified: kyc, age_over_18: false, country_resident: "Côte d’Ivoire 😀" }, decoys: 3 },
  { claims: { unique_human: { verified: false, score: 1.5, list: [1, [true, null]] } }, decoys: 7 },
];

const credentials = [];
for (const { claims, decoys } of cases) {
  const credential = await instance.issue(
    { ...signed, ...claims },
    { _sd: Object.keys(claims), _sd_decoy: decoys },
    { header: { typ: "dc+sd-jwt", kid: "js-1" } },
  );
  credentials.push({ claims, decoys, credential });
}

const keys = [{ kty, crv, x, y, kid: "js-1", use: "sig", alg: "ES256" }];
console.log(JSON.stringify({ issuer: "@sd-jwt/core 0.19.0", jwks: { keys }, credentials }, null, 2));
