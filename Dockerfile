# One image for the sandbox, the example site and its worker; compose.yaml gives each its command.
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Not in /app: the site is to import the installed package, not its source.
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY django_identity ./django_identity
RUN pip install --no-cache-dir ".[demo]" "celery[redis]" "psycopg[binary]>=3.2"
WORKDIR /app
COPY manage.py ./
COPY example_project ./example_project
RUN useradd --system --home-dir /app demo && mkdir .demo certificates && chown demo .demo certificates
USER demo
