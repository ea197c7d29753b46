// A webhook receiver as the service's documents describe it: the raw bytes, HMAC-SHA-256, received.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const secret = process.argv[2];

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const expected = createHmac('sha256', secret).update(body).digest();
    const sent = Buffer.from(request.headers['x-webhook-signature'] ?? '', 'hex');
    const good = sent.length === expected.length && timingSafeEqual(sent, expected);
    console.log(JSON.stringify({ good, event: good ? JSON.parse(body.toString()) : null }));
    response.writeHead(good ? 200 : 401, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ received: good }));
  });
});

server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })));
