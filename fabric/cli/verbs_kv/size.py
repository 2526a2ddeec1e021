"""`kvfabric kv size`: bytes per token, sequence, rank, layer and piece."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.numbers import count
from fabric.cli.output import print_json, table

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--model", help="Shipped model, see `kvfabric kv models`.")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A Hugging Face config.json."
)
@click.option("--layers", type=count())
@click.option("--kv-heads", type=count())
@click.option("--head-dim", type=count())
@click.option("--tokens", required=True, type=count(), help="Tokens of the sequence.")
@click.option("--dtype", default="fp16", show_default=True, help="fp32, fp16, bf16, fp8 or int8.")
@click.option("--tp", default=1, show_default=True, type=count(), help="Tensor-parallel ranks.")
@click.option("--block-tokens", default=16, show_default=True, type=count())
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *,
    model: str | None,
    config: Path | None,
    layers: int | None,
    kv_heads: int | None,
    head_dim: int | None,
    tokens: int,
    dtype: str,
    tp: int,
    block_tokens: int,
    form: str,
) -> None:
    """Size one sequence's KV cache exactly, with the formula and its inputs.

    \b
    Examples:
      kvfabric kv size --model llama-3.1-70b --tokens 61000 --tp 8
      kvfabric kv size --config ./config.json --tokens 8192 --dtype fp8
      kvfabric kv size --layers 80 --kv-heads 8 --head-dim 128 --tokens 4096 --format json
    """
    from fabric.kv.ask import chosen_model
    from fabric.kv.report import pieces_table, size_lines, size_table
    from fabric.kv.size import METHOD, NOT_COUNTED, kv_size

    size = kv_size(chosen_model(model, config, layers, kv_heads, head_dim), tokens, dtype, tp, block_tokens)
    if form == "json":
        print_json(size.to_dict())
        return
    click.echo("\n".join(size_lines(size)) + "\n")
    click.echo(table(*size_table(size)) + "\n")
    click.echo(table(*pieces_table(size)))
    click.echo(f"\nModel: {METHOD}\nLeft out: {'; '.join([*size.left_out, *NOT_COUNTED])}")
