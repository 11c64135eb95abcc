# One image for the API and the worker: `docker run <image> api`, `docker run <image> worker`.
# Debian, not Alpine: the Temporal SDK's native part needs glibc. Node 24 runs a TypeScript config by itself.
# What runs belongs to root and is read by user 1000; a project goes into /app/project.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# no install script of a dependency is needed, so none is run
RUN npm ci --ignore-scripts --no-progress
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.mjs scripts/
COPY src src
# the SDK brings its native part for five platforms, 25 MB each; an image has one
RUN npm run build \
  && npm prune --omit=dev --ignore-scripts \
  && case "$(uname -m)" in \
       x86_64) platform=x86_64-unknown-linux-gnu ;; \
       aarch64) platform=aarch64-unknown-linux-gnu ;; \
       *) echo "the Temporal SDK has no build for $(uname -m)" >&2; exit 1 ;; \
     esac \
  && find node_modules/@temporalio/core-bridge/releases -mindepth 1 -maxdepth 1 ! -name "$platform" \
       -exec rm -r {} +

FROM ${NODE_IMAGE}
# the slim image has no CA certificates, which the native part needs for TLS; the newest are wanted
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* \
  && install --directory --owner=1000 --group=1000 --mode=700 /var/lib/countersign /var/lib/ledger
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
# so that a project with a package.json of its own finds this very instance of countersign, too
RUN ln -s .. node_modules/countersign
COPY deploy/api-health.mjs deploy/worker-health.mjs deploy/
COPY examples/refund/countersign.config.ts examples/refund/tools.ts examples/refund/ledger.ts project/
COPY examples/refund/specs project/specs
# the path of the secrets file is no secret
# hadolint ignore=DL3064
ENV NODE_ENV=production \
    TZ=UTC \
    COUNTERSIGN_HOST=0.0.0.0 \
    COUNTERSIGN_PORT=7280 \
    COUNTERSIGN_TASK_QUEUE=countersign \
    COUNTERSIGN_SECRETS_FILE=/var/lib/countersign/secrets.json
WORKDIR /app/project
USER 1000:1000
EXPOSE 7280
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "/app/deploy/api-health.mjs"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["api"]
