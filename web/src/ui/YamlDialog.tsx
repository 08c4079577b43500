/** The YAML of any object in a dialog, from the ⋮ menu. */
import { Modal } from 'antd'
import { lazy, Suspense } from 'react'
import type { KubeObject } from '../kube'

const YamlPanel = lazy(() => import('./YamlPanel'))

export function YamlDialog({ object, onClose }: { object: KubeObject; onClose: () => void }) {
  return (
    <Modal open title={`${object.kind} ${object.metadata.name}`} onCancel={onClose} footer={null} width={900} destroyOnHidden>
      <Suspense fallback={null}>
        <YamlPanel object={object} />
      </Suspense>
    </Modal>
  )
}
