// Providers whose code is in a separate file: pages load it when a session names the provider.
import * as outside from 'virtual:outside';
import { providers } from 'virtual:providers';
import type { CoreFiles } from '../core/files';
import { lateFile } from '../core/late_file';
import type { ProviderModule } from '../device/module';
import { ErrorCode } from '../schema';

const loaded = providers as Record<string, ProviderModule | undefined>;

export const isLoaded = (name: string) => Object.hasOwn(loaded, name);

/** @throws no_adapter if the file of the provider cannot be loaded; the next call tries again. */
export async function loadProvider(name: string, { late }: CoreFiles): Promise<void> {
  const url = late?.[name];
  if (!url || isLoaded(name)) return;
  const { default: module } = await lateFile<{ default: ProviderModule }>(name, url, outside, ErrorCode.no_adapter);
  loaded[name] ??= module;
}
