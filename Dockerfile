# docker build -t forensics . && docker run --rm -v "$PWD/runs:/runs:ro" -v "$PWD/out:/out" forensics analyze /runs/xyz --out /out/xyz.html
FROM python:3.12-slim
COPY . /src
RUN python -m pip install --no-cache-dir --constraint /src/constraints.txt "/src[remote,mcp]" \
    && rm -rf /src \
    && useradd --create-home forensics
USER forensics
WORKDIR /out
ENTRYPOINT ["forensics"]
CMD ["--help"]
