"""The official client of the Python SDK over standard input and output: mcp_client.py COMMAND ARGUMENT...

Reviews `draft.md`, and prints what it got as one line of JSON.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        reviewed = await session.call_tool("council_review", {"path": "draft.md"})
        resources = await session.list_resources()
        brief = await session.read_resource("quorate://runs/latest/brief")
        prompts = await session.list_prompts()
        explained = await session.get_prompt("explain-run", {"run": "latest"})
        dump = lambda value: value.model_dump(mode="json", by_alias=True)
        print(json.dumps({
            "tools": [tool.name for tool in tools.tools],
            "reviewed": dump(reviewed),
            "resources": [str(resource.uri) for resource in resources.resources],
            "brief": brief.contents[0].text,
            "prompts": [prompt.name for prompt in prompts.prompts],
            "explained": dump(explained),
        }))


asyncio.run(main())
