# The official Airflow image, or an Astro runtime: --build-arg BASE_IMAGE=…
ARG BASE_IMAGE=apache/airflow:3.3.2-python3.12
FROM ${BASE_IMAGE}

ARG PROJECT_DIR=/opt/ytdlp-ops
USER root
COPY packages.txt /tmp/packages.txt
RUN apt-get update \
    && xargs -r apt-get install -y --no-install-recommends < /tmp/packages.txt \
    && rm -rf /var/lib/apt/lists/* /tmp/packages.txt \
    && install -d -o 50000 -g 0 ${PROJECT_DIR} /srv/ytdlp-ops

USER 50000
COPY --chown=50000:0 requirements.txt /tmp/requirements.txt
# uv comes with the official image; imports without bytecode cost twice.
RUN (uv pip install --compile-bytecode -r /tmp/requirements.txt || pip install --no-cache-dir -r /tmp/requirements.txt)

COPY --chown=50000:0 . ${PROJECT_DIR}
RUN python -m compileall -q ${PROJECT_DIR}/include ${PROJECT_DIR}/dags ${PROJECT_DIR}/config
WORKDIR ${PROJECT_DIR}
ENV PYTHONPATH=${PROJECT_DIR}:${PROJECT_DIR}/config \
    PYTHONDONTWRITEBYTECODE= \
    AIRFLOW__CORE__DAGS_FOLDER=${PROJECT_DIR}/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=${PROJECT_DIR}/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False
